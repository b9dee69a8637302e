/* SPDX-License-Identifier: MIT */
/*
 * Build-time tool: print the default filters as C arrays of BPF instructions. Compiling one takes
 * libseccomp longer than a whole call takes callbox, so it is done here, once.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "policy/syscalls.h"
#include "policy/syscalls_table.h"

static int print_filter(const char *name, unsigned variant)
{
        cbx_error error = CBX_ERROR_INIT;
        struct sock_filter filter[BPF_MAXINSNS];
        unsigned short length;
        scmp_filter_ctx context = NULL;
        ssize_t size;
        int fd, r;

        context = seccomp_init(syscalls_default(variant));
        fd = memfd_create("filter", 0);
        if (!context || fd < 0)
                return -ENOMEM;
        r = syscalls_build(context, variant, NULL, NULL, &error);
        if (r < 0) {
                fprintf(stderr, "gen_filter: %s\n", error.text);
                return r;
        }
        r = seccomp_export_bpf(context, fd);
        seccomp_release(context);
        if (r < 0)
                return r;
        if (lseek(fd, 0, SEEK_SET) < 0)
                return -errno;
        size = read(fd, filter, sizeof(filter));
        if (size <= 0)
                return -EIO;
        length = (unsigned short)((size_t)size / sizeof(filter[0]));
        syscalls_compact(filter, &length);
        printf("static const struct sock_filter %s[] = {\n", name);
        for (size_t i = 0; i < length; i++)
                printf("        { 0x%x, %u, %u, 0x%x },\n", filter[i].code, filter[i].jt,
                       filter[i].jf, filter[i].k);
        printf("};\n\n");
        base_close(fd);
        return 0;
}

static void print_numbers(const char *const *names, size_t length)
{
        for (size_t i = 0; i < length; i++) {
                int number = seccomp_syscall_resolve_name(names[i]);

                if (number >= 0)
                        printf("        %d, /* %s */\n", number, names[i]);
        }
}

/* The calls with a name here: one of them that is refused gets EPERM, any other ENOSYS. */
static void print_known(void)
{
        printf("static const short syscalls_known[] = {\n");
        print_numbers(syscalls_allowed, ARRAY_SIZE(syscalls_allowed));
        print_numbers(syscalls_counted, ARRAY_SIZE(syscalls_counted));
        print_numbers(syscalls_naming, ARRAY_SIZE(syscalls_naming));
        print_numbers(syscalls_looking, ARRAY_SIZE(syscalls_looking));
        print_numbers(syscalls_refused, ARRAY_SIZE(syscalls_refused));
        print_numbers(syscalls_conditional, ARRAY_SIZE(syscalls_conditional));
        printf("};\n");
}

int main(void)
{
        static const struct {
                const char *name;
                unsigned variant;
        } filters[] = {
                { "syscalls_default_filter", 0 },
                { "syscalls_shown_filter", SYSCALLS_SOCKETS },
                { "syscalls_guarded_filter", SYSCALLS_SOCKETS | SYSCALLS_GUARDED },
                { "syscalls_hiding_filter", SYSCALLS_SOCKETS | SYSCALLS_HIDING },
                { "syscalls_guarded_hiding_filter",
                  SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_HIDING },
                { "syscalls_lent_hiding_filter",
                  SYSCALLS_LENT | SYSCALLS_SOCKETS | SYSCALLS_HIDING },
                { "syscalls_lent_guarded_hiding_filter",
                  SYSCALLS_LENT | SYSCALLS_SOCKETS | SYSCALLS_GUARDED | SYSCALLS_HIDING },
                { "syscalls_lent_filter", SYSCALLS_LENT },
                { "syscalls_lent_shown_filter", SYSCALLS_LENT | SYSCALLS_SOCKETS },
                { "syscalls_lent_guarded_filter",
                  SYSCALLS_LENT | SYSCALLS_SOCKETS | SYSCALLS_GUARDED },
                { "syscalls_zygote_filter", SYSCALLS_ZYGOTE },
                { "syscalls_caged_filter", SYSCALLS_CAGED | SYSCALLS_SOCKETS | SYSCALLS_GUARDED },
                { "syscalls_caged_old_filter",
                  SYSCALLS_CAGED | SYSCALLS_SOCKETS | SYSCALLS_SIGNALS | SYSCALLS_GUARDED },
        };

        printf("/* Written by gen_filter; see syscalls_table.h. */\n"
               "#include <linux/filter.h>\n\n");
        for (size_t i = 0; i < ARRAY_SIZE(filters); i++)
                if (print_filter(filters[i].name, filters[i].variant) < 0)
                        return 1;
        print_known();
        return fflush(stdout) == 0 ? 0 : 1;
}
