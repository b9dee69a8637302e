/* SPDX-License-Identifier: MIT */
/*
 * kill -9 at random moments: of the warden, its nursery, a maker, its mould, a box's init, a
 * process inside it, or the agent whose calls they are.
 *
 *     kill WORKER ROUNDS [SEED]
 *
 *   killer ──┬─ agent, whose calls run until the killer says that it is done
 *            └─ what is orphaned: the killer is everybody's reaper, so that nothing escapes it
 *
 * A round is good when each call of an agent that lives got one report, and the right one but for
 * those that the death explains; when the next call works; and when no process is left. Every
 * seventh round is one of two agents at a shared warden, of which only one dies.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../soak/host.h"
#include "../soak/load.h"

#define AT_ONCE 10
#define DEADLINE_MS 60000
#define TREE_MAX 1024
#define SHARED_EVERY VICTIMS_

enum victim { NOBODY, AGENT, WARDEN, NURSERY, MAKER, MOULD, INIT, INSIDE, VICTIMS_ };

static const char *const victim_names[VICTIMS_] = {
        "nobody", "agent", "warden", "nursery", "maker", "mould", "init", "a process in a box"
};

/* What a death may do to the calls under way, and to how many of them. */
static const struct {
        unsigned excused;
        unsigned at_most;
        bool renewed; /* the next call has another warden */
} damage[VICTIMS_] = {
        [WARDEN] = { 1U << CBX_INTERNAL, 4 * AT_ONCE, true },
        [NURSERY] = { 1U << CBX_INTERNAL, 4 * AT_ONCE, true },
        /* Calls wait for another maker, unless it had not made a single box. */
        [MAKER] = { 1U << CBX_SETUP, AT_ONCE, false },
        [MOULD] = { 1U << CBX_SETUP, AT_ONCE, false },
        [INIT] = { 1U << CBX_INTERNAL | 1U << CBX_SETUP, 1, false },
        [INSIDE] = { 1U << CBX_SIGNALED | 1U << CBX_SETUP, 1, false },
};

struct round {
        struct load load;
        enum victim victim;
        const char *socket; /* of a shared warden; NULL: one's own */
        const char *program;
};

/* ---- The agent ---- */

struct agent {
        struct load load;
        cbx_warden *warden;
        struct load_call calls[AT_ONCE];
        enum victim victim;
        unsigned excused;
        bool failed;
};

static void complain(struct agent *agent, const char *what, const char *why)
{
        printf("wrong: %s of the %s: %s: %s\n", agent->victim ? "after the death" : "with the life",
               victim_names[agent->victim], what, why);
        agent->failed = true;
}

static void begin(struct agent *agent, struct load_call *call)
{
        static const enum load_kind kinds[] = { LOAD_EXIT,   LOAD_EXIT,  LOAD_NAP,   LOAD_NAP,
                                                LOAD_ECHO,   LOAD_LEAVE, LOAD_FLOOD, LOAD_EVENTS,
                                                LOAD_CANCEL, LOAD_CRASH };
        unsigned choice = load_random(&agent->load, sizeof(kinds) / sizeof(kinds[0]));
        cbx_error error = CBX_ERROR_INIT;

        if (load_start(&agent->load, agent->warden, kinds[choice], call, &error) < 0) {
                complain(agent, "cannot start a call", error.text);
                call->call = NULL;
        }
}

static void proceed(struct agent *agent, struct load_call *call)
{
        char why[2048] = "";
        bool excused = false;
        int r = load_step(call, why, sizeof(why));

        if (r == 0)
                return;
        if (r < 0 || !load_finish(call, damage[agent->victim].excused, &excused, why, sizeof(why)))
                complain(agent, "a call", why);
        call->call = cbx_call_free(call->call);
        agent->excused += excused;
        if (agent->excused > damage[agent->victim].at_most)
                complain(agent, "one call too many", why);
}

/* Calls, as many as may be at once, until the killer is done; then those that are left. */
static void work(struct agent *agent, int word)
{
        unsigned long long last = load_now() + DEADLINE_MS;
        bool done = false;
        unsigned running;

        do {
                struct pollfd fds[AT_ONCE + 1] = { { .fd = done ? -1 : word, .events = POLLIN } };

                running = 0;
                for (int i = 0; i < AT_ONCE; i++) {
                        struct load_call *call = &agent->calls[i];

                        if (!call->call && !done && !agent->failed)
                                begin(agent, call);
                        if (call->call)
                                proceed(agent, call);
                        running += call->call != NULL;
                        fds[i + 1] =
                                (struct pollfd){ .fd = call->call ? cbx_call_fd(call->call) : -1,
                                                 .events = POLLIN };
                }
                (void)poll(fds, AT_ONCE + 1, 2);
                done |= fds[0].revents != 0;
        } while ((running > 0 || !done) && load_now() < last);
        for (int i = 0; i < AT_ONCE; i++)
                if (agent->calls[i].call)
                        complain(agent, "a call without a report",
                                 load_kind_names[agent->calls[i].kind]);
}

/* The connection works again, or still. A box that was waiting for its call when it was struck may
 * be the next one's; then there is one more. */
static void work_once_more(struct agent *agent, int warden)
{
        struct load_call *call = &agent->calls[0];
        cbx_error error = CBX_ERROR_INIT;
        char why[2048] = "";
        bool struck;

        do {
                bool may_be = agent->excused == 0 && damage[agent->victim].at_most == 1;

                struck = false;
                if (load_start(&agent->load, agent->warden, LOAD_EXIT, call, &error) < 0)
                        complain(agent, "cannot start the next call", error.text);
                else if (!load_finish(call, may_be ? damage[agent->victim].excused : 0, &struck,
                                      why, sizeof(why)))
                        complain(agent, "the next call", why);
                agent->excused += struck;
        } while (struck);
        if ((cbx_warden_pid(agent->warden) != warden) != damage[agent->victim].renewed)
                complain(agent, "the next call", "has the wrong warden");
}

static int be_agent(struct round *round, int word, int report)
{
        cbx_warden_options options = CBX_WARDEN_OPTIONS_INIT;
        struct agent agent = { .victim = round->victim, .load = round->load };
        cbx_error error = CBX_ERROR_INIT;
        int pid;

        options.socket = round->socket;
        if (cbx_warden_open(&options, &agent.warden, &error) < 0) {
                complain(&agent, "no warden", error.text);
                return 1;
        }
        pid = cbx_warden_pid(agent.warden);
        if (load_random(&agent.load, 2) && cbx_prepare(agent.warden, agent.load.policies[0], NULL))
                complain(&agent, "cbx_prepare", "failed");
        if (write(report, &pid, sizeof(pid)) != sizeof(pid))
                return 1;
        work(&agent, word);
        if (!agent.failed)
                work_once_more(&agent, pid);
        cbx_warden_close(agent.warden);
        return agent.failed;
}

/* ---- The killer ---- */

struct child {
        pid_t pid;
        int word;   /* closed: the killer is done */
        int report; /* its warden's pid comes here */
};

static bool start_agent(struct round *round, unsigned seed, struct child *ret)
{
        int word[2], report[2];

        if (pipe2(word, O_CLOEXEC) < 0 || pipe2(report, O_CLOEXEC) < 0)
                return false;
        fflush(stdout);
        ret->pid = fork();
        if (ret->pid == 0) {
                close(word[1]);
                close(report[0]);
                round->load.random ^= seed;
                _exit(be_agent(round, word[0], report[1]));
        }
        close(word[0]);
        close(report[1]);
        ret->word = word[1];
        ret->report = report[0];
        return ret->pid > 0;
}

static pid_t await_warden(const struct child *child)
{
        struct pollfd fd = { .fd = child->report, .events = POLLIN };
        pid_t pid;

        return poll(&fd, 1, DEADLINE_MS) > 0 &&
                               read(child->report, &pid, sizeof(pid)) == sizeof(pid)
                       ? pid
                       : -1;
}

/* End a process, and wait until it is gone: on a busy machine it would take calls until then. */
static bool kill_and_wait(pid_t pid)
{
        int fd = (int)syscall(SYS_pidfd_open, pid, 0);
        bool good = fd >= 0 && kill(pid, SIGKILL) == 0 &&
                    poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, DEADLINE_MS) > 0;

        if (fd >= 0)
                close(fd);
        return good;
}

/* End one process of that role, if there is one now. */
static bool strike(struct round *round, pid_t warden, pid_t agent)
{
        static const enum host_role roles[VICTIMS_] = {
                [WARDEN] = HOST_WARDEN, [NURSERY] = HOST_NURSERY, [MAKER] = HOST_MAKER,
                [MOULD] = HOST_MOULD,   [INIT] = HOST_INIT,       [INSIDE] = HOST_INSIDE
        };
        static struct host_process tree[TREE_MAX];
        size_t n, n_found = 0;
        pid_t found[TREE_MAX];

        if (round->victim == NOBODY)
                return true;
        if (round->victim == AGENT)
                return kill(agent, SIGKILL) == 0;
        n = host_tree(warden, tree, TREE_MAX);
        for (size_t i = 0; i < n; i++)
                if (tree[i].role == roles[round->victim] && tree[i].state != 'Z')
                        found[n_found++] = tree[i].pid;
        return n_found > 0 && kill_and_wait(found[load_random(&round->load, (unsigned)n_found)]);
}

static void pause_some(struct round *round, unsigned milliseconds)
{
        usleep(load_random(&round->load, milliseconds * 1000));
}

/* Returns whether the agent ended as it should. */
static bool await_agent(struct child *child, bool killed)
{
        unsigned long long last = load_now() + 2ULL * DEADLINE_MS;
        int status = 0;
        pid_t pid;

        close(child->word);
        close(child->report);
        while ((pid = waitpid(child->pid, &status, WNOHANG)) == 0 && load_now() < last)
                usleep(500);
        if (pid == 0) {
                printf("wrong: the agent does not end\n");
                (void)kill(child->pid, SIGKILL);
                (void)waitpid(child->pid, &status, 0);
                return false;
        }
        return killed ? WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL
                      : WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static bool play_round(struct round *round)
{
        struct child child;
        bool struck = false, good;
        pid_t warden;

        if (!start_agent(round, 1, &child))
                return false;
        warden = await_warden(&child);
        pause_some(round, 60);
        for (int i = 0; warden > 0 && !struck && i < 50; i++) {
                struck = strike(round, warden, child.pid);
                if (!struck)
                        pause_some(round, 4);
        }
        pause_some(round, 10);
        good = await_agent(&child, round->victim == AGENT) && struck;
        if (host_reap(20, true) > 0) {
                printf("wrong: processes are left after the death of the %s\n",
                       victim_names[round->victim]);
                good = false;
        }
        if (!struck)
                printf("wrong: no %s to kill\n", victim_names[round->victim]);
        return good;
}

/* ---- Two agents, one warden ---- */

/* Does somebody listen there? The name is there a little earlier. */
static bool answers(const char *path)
{
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        bool good;

        snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
        good = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;
        if (fd >= 0)
                close(fd);
        return good;
}

static pid_t start_shared(const struct round *round)
{
        pid_t pid;

        fflush(stdout);
        pid = fork();
        if (pid == 0) {
                execl(round->program, "callbox", "warden", "--socket", round->socket, NULL);
                _exit(127);
        }
        for (int i = 0; pid > 0 && !answers(round->socket) && i < 10000; i++)
                usleep(1000);
        return pid;
}

/* The one who lives has nothing to excuse. */
static bool play_shared_round(struct round *round)
{
        struct round bystander = *round;
        struct child victim, other;
        pid_t warden = start_shared(round);
        bool good;

        bystander.victim = NOBODY;
        round->victim = AGENT;
        if (warden < 0 || !start_agent(round, 1, &victim) || !start_agent(&bystander, 2, &other))
                return false;
        (void)await_warden(&victim);
        (void)await_warden(&other);
        pause_some(round, 60);
        good = strike(round, warden, victim.pid);
        pause_some(round, 30);
        good = await_agent(&other, false) && good;
        good = await_agent(&victim, true) && good;
        (void)kill(warden, SIGTERM);
        if (host_reap(20, true) > 0) {
                printf("wrong: processes are left at a shared warden\n");
                good = false;
        }
        return good;
}

int main(int argc, char **argv)
{
        unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, bad = 0;
        unsigned seed = argc > 3 ? (unsigned)strtoul(argv[3], NULL, 10) : 1;
        cbx_error error = CBX_ERROR_INIT;
        struct round round = { .program = getenv("CALLBOX_WARDEN") };
        unsigned long deaths[VICTIMS_] = { 0 };
        char path[64];
        int mounts = host_mounts(), cgroups = host_cgroups();

        setvbuf(stdout, NULL, _IOLBF, 0);
        if (argc < 3 || argc > 4 || rounds == 0 || !round.program) {
                fputs("usage: CALLBOX_WARDEN=PROGRAM kill WORKER ROUNDS [SEED]\n", stderr);
                return 2;
        }
        (void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
        (void)signal(SIGPIPE, SIG_IGN);
        if (load_open(&round.load, argv[1], seed, &error) < 0) {
                printf("cannot begin: %s\n", error.text);
                return 1;
        }
        snprintf(path, sizeof(path), "/tmp/callbox-test-kill-%d", getpid());
        for (unsigned long i = 0; i < rounds && bad < 10; i++) {
                bool shared = i % SHARED_EVERY == SHARED_EVERY - 1, good;

                round.victim = shared ? AGENT : (enum victim)(1 + (i % SHARED_EVERY));
                round.socket = shared ? path : NULL;
                good = shared ? play_shared_round(&round) : play_round(&round);
                deaths[round.victim]++;
                if (!good)
                        printf("round %lu (%s%s) was wrong\n", i, victim_names[round.victim],
                               shared ? ", shared" : "");
                bad += !good;
        }
        load_close(&round.load);
        for (int i = 1; i < VICTIMS_; i++)
                printf("%s %lu%s", victim_names[i], deaths[i], i + 1 < VICTIMS_ ? ", " : "\n");
        if (host_mounts() > mounts || host_cgroups() > cgroups) {
                printf("wrong: %d mounts and %d control groups, before %d and %d\n", host_mounts(),
                       host_cgroups(), mounts, cgroups);
                bad++;
        }
        printf("%lu rounds, %lu wrong\n", rounds, bad);
        return bad > 0;
}
