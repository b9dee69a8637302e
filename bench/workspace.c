/* SPDX-License-Identifier: MIT */
/*
 * Work in a workspace, outside and in a box. There init makes every change to a file in place of
 * the program (src/box/guard.h), so what counts is how many small files are made or taken away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench.h"

/* Shell, run in the workspace. */
struct job {
        const char *name, *what;
        const char *needs;   /* without which it is not measured */
        const char *once;    /* what there is to work on */
        const char *prepare; /* before each turn, off the bill */
        const char *work;
        const char *hide; /* in the workspace, or NULL */
        const char *budget;
        double limit;
};

#define MANY_FILES                                                                                 \
        "for d in $(seq 50); do mkdir -p tree/$d; for f in $(seq 40); do "                         \
        "echo \"file $d/$f\" > tree/$d/$f; done; done"

static const struct job jobs[] = {
        {
                .name = "build",
                .what = "gcc on 30 small files, and linking them, in a workspace",
                .needs = "gcc",
                .once = "for i in $(seq 30); do printf '#include <stdio.h>\n#include <stdlib.h>\n"
                        "int f%d(int n) { printf(\"%%d\", n); return abs(n) + %d; }\n' $i $i "
                        "> f$i.c; done; echo 'int main(void) { return 0; }' > main.c",
                .prepare = "rm -f *.o work",
                .work = "for f in *.c; do gcc -O1 -c \"$f\" || exit 1; done; gcc -o work *.o",
                .budget = "building in a workspace",
                .limit = 1.1,
        },
        {
                .name = "git",
                .what = "git add and git commit of 2 000 new files in a workspace",
                .needs = "git",
                .once = MANY_FILES,
                .prepare = "rm -rf .git && git init -q .",
                .work = "git add . && git -c user.name=bench -c user.email=bench@localhost "
                        "-c gc.auto=0 commit -q -m all",
                .budget = "git add and commit in a workspace",
                .limit = 4,
        },
        {
                .name = "remove",
                .what = "rm -rf of 2 000 files in a workspace",
                .needs = "rm",
                .once = MANY_FILES,
                .prepare = "cp -r tree gone",
                .work = "rm -rf gone",
                .budget = "removing files in a workspace",
                .limit = 6,
        },
        {
                .name = "search",
                .what = "grep -r over 2 000 files in a workspace of which one is hidden",
                .needs = "grep",
                .once = MANY_FILES "; echo secret > .env",
                .prepare = "true",
                .work = "grep -rq nothing tree; test $? = 1",
                .hide = ".env",
                .budget = "reading files beside a hidden one",
                .limit = 6,
        },
};

static void shell(struct contestant *c, const char *directory, const char *script)
{
        command_add(c, (const char *const[]){ "sh", "-c", script, directory, NULL });
}

static double run_prepared(struct contestant *self)
{
        (void)command_run(self->with);
        return command_run(self);
}

static char *in_directory(const char *script)
{
        char *text;

        if (asprintf(&text, "cd \"$0\" && %s", script) < 0)
                die("memory");
        return text;
}

static void run_once(const char *directory, const char *script)
{
        struct contestant once = { .name = "what there is to work on" };
        char *text = in_directory(script);

        shell(&once, directory, text);
        (void)command_run(&once);
        free(text);
}

static void race_job(const struct job *job)
{
        struct race race = { .name = job->name, .what = job->what, .rounds = options.work_rounds };
        struct contestant prepare = { .name = "what comes before" }, needed = { 0 };
        struct contestant *bare = race_enter(&race, "outside", run_prepared, &prepare),
                          *ours = race_enter(&race, "in a box", run_prepared, &prepare);
        char directory[64], hidden[128], *work = in_directory(job->work),
                                         *before = in_directory(job->prepare);

        snprintf(directory, sizeof(directory), "%s/workspace", options.scratch);
        snprintf(hidden, sizeof(hidden), "%s/%s", directory, job->hide ? job->hide : "");
        if (mkdir(directory, 0755) < 0)
                die(directory);
        command_add(&needed, (const char *const[]){ job->needs, "--version", NULL });
        command_try(&needed);
        snprintf(bare->absent, sizeof(bare->absent), "%s", needed.absent);
        snprintf(ours->absent, sizeof(ours->absent), "%s", needed.absent);
        run_once(directory, job->once);
        shell(&prepare, directory, before);
        shell(bare, directory, work);
        command_add(ours, (const char *const[]){ options.callbox, "run", "-q", "--workspace",
                                                 directory, NULL });
        if (job->hide)
                command_add(ours, (const char *const[]){ "--hide", hidden, NULL });
        command_add(ours, (const char *const[]){ "--", NULL });
        shell(ours, directory, work);
        race_at_most(&race, job->budget, ours, job->limit, bare);
        race_run(&race);
        run_once(options.scratch, "rm -rf workspace");
        free(work);
        free(before);
}

void race_workspace(void)
{
        for (size_t i = 0; i < ARRAY_SIZE(jobs); i++)
                race_job(&jobs[i]);
}
