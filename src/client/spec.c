/* SPDX-License-Identifier: MIT */
/* Reading what the caller hands in: structs of whatever age, and the spec of a call. */
#include <fcntl.h>
#include <string.h>

#include "client/client.h"

int client_read_struct(const char *what, const void *from, size_t least, void *to, size_t size,
                       cbx_error *error)
{
        size_t theirs;

        memcpy(&theirs, from, sizeof(theirs));
        if (theirs < least || theirs > CLIENT_STRUCT_MAX)
                return error_set(error, -EINVAL, what, "%s is not initialised with its INIT macro",
                                 what);
        for (size_t i = size; i < theirs; i++)
                if (((const char *)from)[i] != 0)
                        return error_set(error, -E2BIG, what,
                                         "%s has fields that this version of the library does not "
                                         "know",
                                         what);
        memcpy(to, from, MIN(theirs, size));
        return 0;
}

static int check_variables(const char *const *variables, cbx_error *error)
{
        for (; variables && *variables; variables++) {
                const char *equals = strchr(*variables, '=');
                char name[128];

                if (!equals || (size_t)(equals - *variables) >= sizeof(name))
                        return error_set(error, -EINVAL, "environment",
                                         "\"%.40s\" is no NAME=VALUE", *variables);
                memcpy(name, *variables, (size_t)(equals - *variables));
                name[equals - *variables] = '\0';
                if (!policy_variable_is_name(name))
                        return error_set(error, -EINVAL, "environment",
                                         "\"%.40s\" is no name of a variable", name);
        }
        return 0;
}

int client_check_modes(const cbx_spec *spec, cbx_error *error)
{
        static const char text[] = "is none of the modes of callbox.h";

        if (spec->input_mode < CBX_BYTES || spec->input_mode > CBX_FROM_FD)
                return error_set(error, -EINVAL, "input_mode", "%d %s", spec->input_mode, text);
        if (spec->output_mode < CBX_CAPTURE || spec->output_mode > CBX_DISCARD)
                return error_set(error, -EINVAL, "output_mode", "%d %s", spec->output_mode, text);
        if (spec->errors_mode < CBX_CAPTURE || spec->errors_mode > CBX_DISCARD)
                return error_set(error, -EINVAL, "errors_mode", "%d %s", spec->errors_mode, text);
        if (spec->result_mode < CBX_NO_RESULT || spec->result_mode > CBX_RESULT_EVENTS)
                return error_set(error, -EINVAL, "result_mode", "%d %s", spec->result_mode, text);
        if (!spec->input && spec->input_length > 0)
                return error_set(error, -EINVAL, "input", "is NULL, but has a length");
        return 0;
}

/* A descriptor that is not open would only show as a failure to ask. */
static int check_descriptor(bool used, int fd, const char *field, cbx_error *error)
{
        if (used && fcntl(fd, F_GETFL) < 0)
                return error_set(error, -EBADF, field, "%d is no open descriptor", fd);
        return 0;
}

static int check_descriptors(const cbx_spec *spec, cbx_error *error)
{
        int r = check_descriptor(spec->input_mode == CBX_FROM_FD, spec->input_fd, "input_fd",
                                 error);

        if (r == 0)
                r = check_descriptor(spec->output_mode == CBX_TO_FD, spec->output_fd, "output_fd",
                                     error);
        if (r == 0)
                r = check_descriptor(spec->errors_mode == CBX_TO_FD, spec->errors_fd, "errors_fd",
                                     error);
        return r;
}

/* It comes back in a report, which is JSON. */
int client_check_id(const char *id, cbx_error *error)
{
        _cleanup_json_ json_t *json = id ? json_string(id) : NULL;

        if (id && !*id)
                return error_set(error, -EINVAL, "id", "must not be empty");
        if (id && !json)
                return error_set(error, -EINVAL, "id", "is no UTF-8 text");
        return 0;
}

static int read_program(const cbx_spec *spec, char *shell[4], struct wire_spec *ret,
                        cbx_error *error)
{
        if (!spec->argv == !spec->shell)
                return error_set(error, -EINVAL, "argv",
                                 "either argv or shell has to say what is to be run");
        if (spec->shell) {
                shell[0] = (char *)"/bin/sh";
                shell[1] = (char *)"-c";
                shell[2] = (char *)spec->shell;
                shell[3] = NULL;
                ret->argv = shell;
                return 0;
        }
        if (!spec->argv[0] || !spec->argv[0][0])
                return error_set(error, -EINVAL, "argv", "must name a program");
        ret->argv = (char **)spec->argv;
        return 0;
}

static int read_limits(const cbx_spec *spec, const cbx_policy *policy, struct wire_spec *ret,
                       cbx_error *error)
{
        struct policy_limits effective = policy->limits;

        ret->limits = (struct policy_limits){ .wall = spec->wall_limit,
                                              .cpu = spec->cpu_limit,
                                              .cpus = spec->cpus_limit,
                                              .memory = spec->memory_limit,
                                              .processes = spec->process_limit,
                                              .file_size = spec->file_size_limit,
                                              .open_files = spec->open_files_limit,
                                              .output = spec->output_limit,
                                              .capture = spec->capture_limit,
                                              .result = spec->result_limit };
        return policy_limits_tighten(&ret->limits, &effective, error);
}

int client_read_spec(const cbx_spec *spec, const cbx_policy *policy, cbx_spec *room, char *shell[4],
                     struct wire_spec *ret, cbx_error *error)
{
        int r = client_read_struct("cbx_spec", spec, CLIENT_SPEC_LEAST, room, sizeof(*room), error);

        if (r < 0)
                return r;
        if (room->approved || room->answers)
                return error_set(error, -EINVAL, room->answers ? "answers" : "approved",
                                 "only the call of a tool has it");
        *ret = (struct wire_spec){ .id = room->id,
                                   .environment = (char **)room->environment,
                                   .directory = room->cwd,
                                   .input = room->input,
                                   .input_length =
                                           room->input_mode == CBX_BYTES ? room->input_length : 0,
                                   .input_from_fd = room->input_mode == CBX_FROM_FD };
        r = read_program(room, shell, ret, error);
        if (r == 0)
                r = client_check_modes(room, error);
        if (r == 0)
                r = check_variables(room->environment, error);
        if (r == 0)
                r = check_descriptors(room, error);
        if (r == 0)
                r = client_check_id(room->id, error);
        if (r == 0 && room->cwd && room->cwd[0] != '/')
                r = error_set(error, -EINVAL, "cwd", "must be an absolute path");
        if (r == 0)
                r = read_limits(room, policy, ret, error);
        if (r < 0)
                return r;
        ret->sanitize = room->sanitize;
        ret->result_mode = (uint64_t)room->result_mode;
        ret->output_mode[0] = (uint64_t)room->output_mode;
        ret->output_mode[1] = (uint64_t)room->errors_mode;
        return 0;
}
