/* SPDX-License-Identifier: MIT */
/*
 * Main begins in init's memory: until it executes the program the two share it, as after vfork, but
 * both go on. Copying the memory, only to throw the copy away at exec, takes longer than all fences
 * of main together, and doubles what a prepared box holds.
 *
 * What must not be shared is the stack, and what the C library keeps for a thread: errno above all.
 * Main gets a stack of its own and a copy of init's thread-local storage. In a program that is
 * linked statically this is one block: the variables, and behind them the control block, to which
 * the thread pointer points. In any other program, and on other processors, main is simply forked.
 */
#include <elf.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

#include "box/child.h"

#ifdef __x86_64__

#define STACK_SIZE (64 * 1024)
#define STORAGE_SIZE 4096
#define CONTROL_SIZE 1024 /* of the control block: what is used before exec lies at its start */
#define POINTERS 8        /* words in which it may hold its own address */

static _Alignas(64) char stack[STACK_SIZE];
static _Alignas(64) char storage[STORAGE_SIZE];
static struct child begun_with; /* init goes on to change its own */

/* The size of the thread-local variables, which the linker placed below the thread pointer. */
static size_t variables_size(void)
{
        const Elf64_Phdr *header = (const Elf64_Phdr *)getauxval(AT_PHDR);
        size_t n = getauxval(AT_PHNUM);

        for (; header && n > 0; n--, header++)
                if (header->p_type == PT_TLS)
                        return (header->p_memsz + header->p_align - 1) & ~(header->p_align - 1);
        return 0;
}

/* A thread pointer of main's own; NULL where it cannot be made. */
static char *copy_storage(void)
{
        char *copy = storage + STORAGE_SIZE - CONTROL_SIZE, *pointer;
        size_t below = variables_size();

        if (getauxval(AT_BASE) != 0 || below > STORAGE_SIZE - CONTROL_SIZE)
                return NULL; /* there is a dynamic linker, or there is no room */
        __asm__("mov %%fs:0, %0" : "=r"(pointer));
        memcpy(copy - below, pointer - below, below + CONTROL_SIZE);
        for (size_t i = 0; i < POINTERS; i++) {
                char **word = (char **)copy + i;

                if (*word == pointer)
                        *word = copy;
        }
        return copy;
}

static int begin(void *child)
{
        box_main(child);
}

static pid_t clone_sharing(struct child *child)
{
        char *pointer = copy_storage();

        if (!pointer)
                return -1;
        begun_with = *child;
        return clone(begin, stack + STACK_SIZE, CLONE_VM | CLONE_SETTLS | SIGCHLD, &begun_with,
                     NULL, pointer);
}

#else

static pid_t clone_sharing(struct child *child)
{
        (void)child;
        return -1;
}

#endif

pid_t box_spawn_main(struct child *child)
{
        pid_t pid = clone_sharing(child);

        if (pid < 0)
                pid = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
        if (pid == 0)
                box_main(child);
        return pid;
}
