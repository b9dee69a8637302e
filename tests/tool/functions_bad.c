/* SPDX-License-Identifier: MIT */
/* Functions that fail, crash, flood, lie, and leave things behind. */
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "functions.h"

#define CHANNEL 3

/* One way to go wrong, chosen by the argument "how". */
struct way {
        const char *how;
        int (*go)(cbx_reply *reply);
};

static int choose(const struct way *ways, const char *arguments, size_t length, cbx_reply *reply)
{
        json_t *given = json_loadb(arguments, length, 0, NULL);
        const char *how = json_string_value(json_object_get(given, "how"));
        int r = 77;

        for (; how && ways->how; ways++)
                if (strcmp(ways->how, how) == 0) {
                        r = ways->go(reply);
                        break;
                }
        json_decref(given);
        return r;
}

static int say(cbx_reply *reply, const char *json)
{
        return cbx_reply_result(reply, json, strlen(json));
}

static void write_all(int fd, const void *data, size_t length)
{
        const char *at = data;
        ssize_t n;

        for (; length > 0 && (n = write(fd, at, length)) > 0; length -= (size_t)n)
                at += n;
}

/* ---- fail ---- */

static int by_code(cbx_reply *reply)
{
        return say(reply, "\"left behind\"") < 0 ? 1 : 7;
}

static int by_text(cbx_reply *reply)
{
        cbx_reply_error(reply, "the disk is full");
        cbx_reply_error(reply, "and \xff so am I");
        return 0;
}

static int by_both(cbx_reply *reply)
{
        cbx_reply_error(reply, "no such word");
        return 3;
}

static int by_empty_text(cbx_reply *reply)
{
        return cbx_reply_error(reply, "");
}

static int fail(const char *arguments, size_t length, cbx_reply *reply)
{
        static const struct way ways[] = { { "code", by_code },
                                           { "text", by_text },
                                           { "both", by_both },
                                           { "empty", by_empty_text },
                                           { 0 } };

        return choose(ways, arguments, length, reply);
}

/* ---- crash: each after a result that would be good ---- */

static volatile uintptr_t nowhere = 8;

static int by_segv(cbx_reply *reply)
{
        say(reply, "1");
        return *(volatile int *)nowhere;
}

static int by_abort(cbx_reply *reply)
{
        say(reply, "1");
        abort();
}

static int by_exit(cbx_reply *reply)
{
        say(reply, "1");
        exit(0);
}

static int by_quick_exit(cbx_reply *reply)
{
        say(reply, "1");
        fprintf(stderr, "giving up\n");
        _exit(3);
}

static int by_signal(cbx_reply *reply)
{
        say(reply, "1");
        raise(SIGTERM);
        return 0;
}

static int by_spinning(cbx_reply *reply)
{
        say(reply, "1");
        puts("before the end");
        fflush(stdout);
        while (nowhere)
                ;
        return 0;
}

static int by_sleeping(cbx_reply *reply)
{
        say(reply, "1");
        while (nowhere)
                pause();
        return 0;
}

static int by_stack(cbx_reply *reply)
{
        volatile char room[65536];

        room[0] = nowhere > 0 ? (char)by_stack(reply) : 0;
        return room[0];
}

static int by_memory(cbx_reply *reply)
{
        (void)reply;
        for (size_t i = 0; nowhere; i++) {
                char *piece = malloc(1 << 20);

                if (piece)
                        memset(piece, (int)i, 1 << 20);
        }
        return 0;
}

static int crash(const char *arguments, size_t length, cbx_reply *reply)
{
        static const struct way ways[] = { { "segv", by_segv },      { "abort", by_abort },
                                           { "exit", by_exit },      { "_exit", by_quick_exit },
                                           { "signal", by_signal },  { "spin", by_spinning },
                                           { "sleep", by_sleeping }, { "stack", by_stack },
                                           { "memory", by_memory },  { 0 } };

        return choose(ways, arguments, length, reply);
}

/* ---- flood ---- */

static int onto(int fd)
{
        static char noise[65536];

        memset(noise, 'n', sizeof(noise));
        for (int i = 0; i < 640; i++)
                write_all(fd, noise, sizeof(noise));
        return 0;
}

static int onto_stdout(cbx_reply *reply)
{
        onto(STDOUT_FILENO);
        return say(reply, "\"still here\"");
}

static int onto_stderr(cbx_reply *reply)
{
        onto(STDERR_FILENO);
        return say(reply, "\"still here\"");
}

static int onto_channel(cbx_reply *reply)
{
        say(reply, "1");
        return onto(CHANNEL);
}

static int with_texts(cbx_reply *reply)
{
        static char text[65537];

        memset(text, 't', sizeof(text) - 1);
        for (int i = 0; i < 640; i++)
                cbx_reply_text(reply, text);
        return say(reply, "1");
}

static int flood(const char *arguments, size_t length, cbx_reply *reply)
{
        static const struct way ways[] = { { "stdout", onto_stdout },
                                           { "stderr", onto_stderr },
                                           { "channel", onto_channel },
                                           { "texts", with_texts },
                                           { 0 } };

        return choose(ways, arguments, length, reply);
}

/* ---- broken: the given text is the result, as it is ---- */

static int broken(const char *arguments, size_t length, cbx_reply *reply)
{
        json_t *given = json_loadb(arguments, length, JSON_ALLOW_NUL, NULL);
        json_t *hex = json_object_get(given, "hex"), *repeat = json_object_get(given, "repeat");
        size_t n = json_string_length(hex) / 2,
               times = repeat ? (size_t)json_integer_value(repeat) : 1;
        char *bytes = malloc(n * times + 1);
        int r = -1;

        for (size_t i = 0; bytes && i < n; i++) {
                char digits[3] = { json_string_value(hex)[2 * i],
                                   json_string_value(hex)[2 * i + 1] };

                bytes[i] = (char)strtoul(digits, NULL, 16);
        }
        for (size_t i = 1; bytes && i < times; i++)
                memcpy(bytes + i * n, bytes, n);
        if (bytes && json_is_true(json_object_get(given, "raw")))
                write_all(CHANNEL, bytes, n * times);
        else if (bytes)
                r = cbx_reply_result(reply, bytes, n * times);
        free(bytes);
        r = json_object_get(given, "code") ? (int)json_integer_value(json_object_get(given, "code"))
                                           : (r < 0 ? 0 : r);
        if (json_is_true(json_object_get(given, "exit")))
                _exit(r);
        json_decref(given);
        return r;
}

/* ---- leave: processes and threads that outlive the call ---- */

/* A child that keeps every stream open and goes on writing. */
static int a_child(cbx_reply *reply)
{
        if (fork() == 0) {
                setsid();
                for (;;) {
                        write_all(STDOUT_FILENO, "late\n", 5);
                        write_all(CHANNEL, "", 0);
                        usleep(1000);
                }
        }
        return say(reply, "\"gone\"");
}

/* A child that forges a result once its parent has returned. */
static int a_forger(cbx_reply *reply)
{
        static const unsigned char frame[] = {
                6, 0, 0, 0, 0, 0, 0, 0, '"', 'l', 'i', 'e', 's', '"'
        };

        if (fork() == 0) {
                for (int i = 0; i < 1000; i++) {
                        write_all(CHANNEL, frame, sizeof(frame));
                        usleep(100);
                }
                _exit(0);
        }
        return say(reply, "\"gone\"");
}

static void *sleep_on(void *context)
{
        for (;;)
                pause();
        return context;
}

static int a_thread(cbx_reply *reply)
{
        pthread_t thread;

        if (pthread_create(&thread, NULL, sleep_on, NULL) != 0)
                return 1;
        return say(reply, "\"gone\"");
}

static int leave(const char *arguments, size_t length, cbx_reply *reply)
{
        static const struct way ways[] = {
                { "child", a_child }, { "forger", a_forger }, { "thread", a_thread }, { 0 }
        };

        return choose(ways, arguments, length, reply);
}

/* ---- threads that all reply at once ---- */

#define THREADS 8
#define LINES 500

static void *talk(void *context)
{
        cbx_reply *reply = context;
        char line[200];

        memset(line, 'l', sizeof(line) - 1);
        line[sizeof(line) - 1] = '\0';
        for (int i = 0; i < LINES; i++)
                if (cbx_reply_log(reply, "info", line) < 0 || cbx_reply_text(reply, ".") < 0)
                        return reply;
        return NULL;
}

static int crowd(const char *arguments, size_t length, cbx_reply *reply)
{
        pthread_t threads[THREADS];
        void *failed = NULL;
        int r = 0;

        (void)arguments;
        (void)length;
        for (int i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], NULL, talk, reply) != 0)
                        return 1;
        for (int i = 0; i < THREADS; i++) {
                pthread_join(threads[i], &failed);
                r |= failed != NULL;
        }
        return r ? 2 : say(reply, "\"all have spoken\"");
}

#define ANYTHING "{\"type\": \"object\"}"

const cbx_tool bad_tools[] = {
        { .name = "fail", .input_schema = ANYTHING, .run = fail },
        { .name = "crash", .input_schema = ANYTHING, .run = crash },
        { .name = "flood", .input_schema = ANYTHING, .run = flood },
        { .name = "broken", .input_schema = ANYTHING, .run = broken },
        { .name = "leave", .input_schema = ANYTHING, .run = leave },
        { .name = "crowd", .input_schema = ANYTHING, .run = crowd },
        { 0 },
};
