/* SPDX-License-Identifier: MIT */
/* What the messages say: policies, specs and reports as packed values. */
#include <string.h>

#include "policy/pins.h"
#include "warden/wire.h"

#define TEXTS_MAX 262144
#define PINS_MAX 2048

/* ---- Errors ---- */

void wire_pack_error(struct pack *pack, const cbx_error *error)
{
        pack_number(pack, (uint64_t)-error->code);
        pack_text(pack, error->where);
        pack_text(pack, error->text);
        pack_text(pack, error->hint);
}

void wire_unpack_error(struct unpack *unpack, cbx_error *error)
{
        int code = (int)unpack_number_below(unpack, 4096);
        const char *where = unpack_text(unpack), *text = unpack_text(unpack),
                   *hint = unpack_text(unpack);

        if (code == 0 || !where || !text || !hint)
                return;
        error_set(error, -code, where, "%s", text);
        if (*hint)
                error_hint(error, "%s", hint);
}

/* ---- Policies ---- */

void wire_pack_policy(struct pack *pack, const struct wire_policy *policy)
{
        pack_number(pack, policy->id);
        pack_bytes(pack, policy->text, policy->length);
        pack_text(pack, policy->directory);
        pack_texts(pack, (const char *const *)policy->environment);
        pack_number(pack, policy->explain);
        pack_number(pack, policy->unboxed);
        pack_number(pack, policy->program.argv != NULL);
        if (policy->program.argv) {
                pack_texts(pack, (const char *const *)policy->program.argv);
                pack_texts(pack, (const char *const *)policy->program.environment);
                pack_text(pack, policy->program.directory);
                pack_number(pack, policy->program.result);
        }
        pack_number(pack, (uint64_t)policy->program.forks + policy->program.later);
        pack_number(pack, policy->n_pins);
        for (size_t i = 0; i < policy->n_pins; i++) {
                const struct policy_pin *pin = &policy->pins[i];

                pack_text(pack, pin->asked);
                pack_text(pack, pin->path);
                pack_number(pack, pin->there);
                pack_number(pack, pin->type);
                pack_number(pack, pin->device);
                pack_number(pack, pin->inode);
                pack_number(pack, pin->born);
        }
}

/* Texts point into the message. */
static void unpack_pins(struct unpack *unpack, struct wire_policy *policy)
{
        size_t n = unpack_number_below(unpack, PINS_MAX);

        policy->pins = unpack->bad || n == 0 ? NULL : calloc(n, sizeof(*policy->pins));
        unpack->bad |= n > 0 && !policy->pins;
        for (size_t i = 0; !unpack->bad && i < n; i++) {
                struct policy_pin *pin = &policy->pins[policy->n_pins++];

                pin->asked = (char *)unpack_text(unpack);
                pin->path = (char *)unpack_text(unpack);
                pin->there = unpack_number_below(unpack, 2);
                pin->type = (mode_t)unpack_number_below(unpack, 0170001);
                pin->device = unpack_number(unpack);
                pin->inode = unpack_number(unpack);
                pin->born = unpack_number(unpack);
                unpack->bad |= !pin->asked || !pin->path || pin->path[0] != '/';
        }
}

int wire_take_pins(const struct wire_policy *asked, cbx_policy *policy)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < asked->n_pins; i++)
                r = policy_pin_take(policy, &asked->pins[i]);
        return r;
}

static bool unpack_program(struct unpack *unpack, struct wire_program *program)
{
        program->argv = unpack_texts(unpack, TEXTS_MAX);
        program->environment = unpack_texts(unpack, TEXTS_MAX);
        program->directory = unpack_text(unpack);
        program->result = unpack_number_below(unpack, 2);
        return program->argv && program->argv[0];
}

int wire_unpack_policy(struct unpack *unpack, struct wire_policy *ret)
{
        struct wire_policy policy = { .id = unpack_number(unpack) };
        uint64_t forks;

        policy.text = unpack_bytes(unpack, &policy.length);
        policy.directory = unpack_text(unpack);
        policy.environment = unpack_texts(unpack, TEXTS_MAX);
        policy.explain = unpack_number_below(unpack, 2);
        policy.unboxed = (enum plan_unboxed)unpack_number_below(unpack, PLAN_UNBOXED_MAX_);
        if (unpack_number_below(unpack, 2) && !unpack_program(unpack, &policy.program))
                unpack->bad = true;
        forks = unpack_number_below(unpack, 3);
        policy.program.forks = forks > 0;
        policy.program.later = forks > 1;
        unpack_pins(unpack, &policy);
        if (!unpack_is_whole(unpack) || !policy.directory || policy.directory[0] != '/') {
                wire_policy_free(&policy);
                return -EPROTO;
        }
        *ret = policy;
        return 0;
}

void wire_policy_free(struct wire_policy *policy)
{
        free(policy->environment);
        free(policy->program.argv);
        free(policy->program.environment);
        free(policy->pins);
        *policy = (struct wire_policy){ 0 };
}

/* ---- Specs ---- */

void wire_pack_line(struct pack *pack, const struct wire_line *line)
{
        pack_number(pack, line->number);
        pack_number(pack, line->again);
}

int wire_unpack_line(struct unpack *unpack, struct wire_line *ret)
{
        ret->number = (unsigned)unpack_number_below(unpack, WIRE_LINES + 1);
        ret->again = unpack_number_below(unpack, 2);
        return unpack->bad || (ret->again && ret->number == 0) ? -EPROTO : 0;
}

static void pack_limits(struct pack *pack, const struct policy_limits *limits)
{
        pack_real(pack, limits->wall);
        pack_real(pack, limits->cpu);
        pack_real(pack, limits->cpus);
        pack_number(pack, limits->memory);
        pack_number(pack, limits->processes);
        pack_number(pack, limits->file_size);
        pack_number(pack, limits->open_files);
        pack_number(pack, limits->tmp_size);
        pack_number(pack, limits->output);
        pack_number(pack, limits->capture);
        pack_number(pack, limits->result);
}

static void unpack_limits(struct unpack *unpack, struct policy_limits *limits)
{
        limits->wall = unpack_real(unpack);
        limits->cpu = unpack_real(unpack);
        limits->cpus = unpack_real(unpack);
        limits->memory = unpack_number(unpack);
        limits->processes = unpack_number(unpack);
        limits->file_size = unpack_number(unpack);
        limits->open_files = unpack_number(unpack);
        limits->tmp_size = unpack_number(unpack);
        limits->output = unpack_number(unpack);
        limits->capture = unpack_number(unpack);
        limits->result = unpack_number(unpack);
}

void wire_pack_spec(struct pack *pack, uint64_t policy, const struct wire_spec *spec)
{
        pack_number(pack, policy);
        pack_text(pack, spec->id);
        pack_texts(pack, (const char *const *)spec->argv);
        pack_texts(pack, (const char *const *)spec->environment);
        pack_text(pack, spec->directory);
        pack_number(pack, spec->input_from_fd);
        pack_bytes(pack, spec->input, spec->input_length);
        for (int i = 0; i < 2; i++)
                pack_number(pack, spec->output_mode[i]);
        pack_number(pack, spec->result_mode);
        pack_number(pack, spec->sanitize);
        pack_limits(pack, &spec->limits);
        for (int i = 0; i < WIRE_BOUNDS; i++) {
                pack_number(pack, spec->bounds[i].key);
                pack_number(pack, spec->bounds[i].most);
        }
}

int wire_unpack_spec(struct unpack *unpack, uint64_t *ret_policy, struct wire_spec *ret)
{
        struct wire_spec spec = { 0 };
        uint64_t policy = unpack_number(unpack);

        spec.id = unpack_text(unpack);
        spec.argv = unpack_texts(unpack, TEXTS_MAX);
        spec.environment = unpack_texts(unpack, TEXTS_MAX);
        spec.directory = unpack_text(unpack);
        spec.input_from_fd = unpack_number_below(unpack, 2);
        spec.input = unpack_bytes(unpack, &spec.input_length);
        for (int i = 0; i < 2; i++)
                spec.output_mode[i] = unpack_number_below(unpack, CBX_DISCARD + 1);
        spec.result_mode = unpack_number_below(unpack, CBX_RESULT_EVENTS + 1);
        spec.sanitize = unpack_number_below(unpack, 2);
        unpack_limits(unpack, &spec.limits);
        for (int i = 0; i < WIRE_BOUNDS; i++) {
                spec.bounds[i].key = unpack_number(unpack);
                spec.bounds[i].most = (uint32_t)unpack_number_below(unpack, 1ULL << 32);
        }
        if (!unpack_is_whole(unpack) || !spec.argv[0]) {
                free(spec.argv);
                free(spec.environment);
                return -EPROTO;
        }
        *ret_policy = policy;
        *ret = spec;
        return 0;
}

/* ---- Reports ---- */

static void pack_output(struct pack *pack, const struct output *output)
{
        pack_number(pack, output->capacity);
        pack_number(pack, output->total);
        pack_number(pack, output->head_length);
        pack_number(pack, output->tail_length);
        pack_number(pack, output->tail_at);
        pack_number(pack, output->filed);
}

static void pack_report(struct pack *pack, const struct report *report)
{
        _cleanup_free_ char *denials = NULL;

        pack_text(pack, report->id);
        pack_number(pack, report->reason);
        pack_number(pack, (uint64_t)report->code);
        pack_number(pack, (uint64_t)report->signal);
        pack_number(pack, report->not_found);
        pack_number(pack, report->not_executable);
        pack_number(pack, report->output_lost);
        pack_number(pack, report->kill_pending);
        pack_number(pack, report->captured);
        pack_number(pack, report->has_result);
        pack_number(pack, (uint64_t)report->started_at.tv_sec);
        pack_number(pack, (uint64_t)report->started_at.tv_nsec);
        pack_number(pack, report->setup_time);
        pack_number(pack, report->run_time);
        pack_number(pack, report->cpu_user);
        pack_number(pack, report->cpu_system);
        pack_number(pack, report->memory_peak);
        pack_number(pack, report->processes_peak);
        pack_number(pack, report->bytes_in);
        pack_limits(pack, &report->limits);
        pack_number(pack, report->policy != NULL);
        pack_number(pack, report->caged);
        pack_number(pack, report->unboxed);
        pack_number(pack, (uint64_t)report->landlock_abi);
        pack_number(pack, report->cgroup);
        pack_number(pack, report->obstacle);
        pack_texts(pack, (const char *const *)report->warnings);
        wire_pack_error(pack, &report->error);
        if (json_array_size(report->denials) > 0) {
                denials = json_dumps(report->denials, JSON_COMPACT);
                pack->failed |= !denials;
        }
        pack_text(pack, denials);
        for (int i = 0; i < STREAMS; i++)
                pack_output(pack, &report->output[i]);
}

int wire_send_report(int socket, const struct report *report, int flags)
{
        _cleanup_pack_ struct pack pack = PACK_INIT;
        struct iovec parts[2 + STREAMS * OUTPUT_PARTS];
        int files[STREAMS], r = 0;
        size_t n_files = 0;
        uint64_t length;

        pack_report(&pack, report);
        if (pack.failed)
                return -ENOMEM;
        length = pack.buffer.length;
        parts[0] = (struct iovec){ &length, sizeof(length) };
        parts[1] = (struct iovec){ pack.buffer.data, pack.buffer.length };
        for (size_t i = 0; r == 0 && i < STREAMS; i++) {
                const struct output *output = &report->output[i];

                output_parts(output, parts + 2 + i * OUTPUT_PARTS);
                if (!output->filed)
                        continue;
                r = output_seal(output);
                files[n_files++] = output->file;
        }
        return r < 0 ? r
                     : wire_send(socket, WIRE_REPORT, parts, ARRAY_SIZE(parts), files, n_files,
                                 flags);
}

static bool unpack_output(struct unpack *unpack, struct output *output, bool *ret_filed)
{
        output->capacity = unpack_number(unpack);
        output->total = unpack_number(unpack);
        output->head_length = unpack_number(unpack);
        output->tail_length = unpack_number(unpack);
        output->tail_at = unpack_number(unpack);
        *ret_filed = unpack_number_below(unpack, 2);
        /* There is no tail before the head is full, and it goes round only when it is full too. */
        return output->capacity <= WIRE_REPORT_MAX &&
               output->head_length <= output->capacity - output->capacity / 2 &&
               output->tail_length <= output->capacity / 2 &&
               output_kept(output) <= output->total &&
               (output->tail_length == 0 ||
                output->head_length == output->capacity - output->capacity / 2) &&
               (output->tail_at == 0 || (output->tail_length == output->capacity / 2 &&
                                         output->tail_at < output->tail_length));
}

/* One stream: its file, or its part of the body's rest. */
static int take_output(struct unpack *unpack, struct wire_message *message, size_t *n_files,
                       const char **rest, const char *end, struct output *output)
{
        struct output known = { 0 };
        bool filed = false;
        int r;

        if (!unpack_output(unpack, &known, &filed))
                return -EPROTO;
        if (filed) {
                int *file = &message->fds[MIN(*n_files, WIRE_FDS_MAX - 1)];

                if (*file < 0)
                        return message->lost ? -EMFILE : -EPROTO;
                r = output_take_file(&known, *file);
                if (r < 0)
                        return r;
                *file = -1; /* taken */
                ++*n_files;
        } else {
                if (output_kept(&known) > (size_t)(end - *rest))
                        return -EPROTO;
                r = output_take_kept(&known, *rest);
                if (r < 0)
                        return r;
                *rest += output_kept(&known);
        }
        *output = known;
        return 0;
}

static int unpack_lists(struct unpack *unpack, struct report *report)
{
        _cleanup_free_ char **warnings = unpack_texts(unpack, TEXTS_MAX);
        const char *denials;
        int r = 0;

        for (char **warning = warnings; r == 0 && warning && *warning; warning++)
                r = report_warn(report, "%s", *warning);
        wire_unpack_error(unpack, &report->error);
        denials = unpack_text(unpack);
        report->denials = denials ? json_loads(denials, 0, NULL) : json_array();
        return r == 0 && report->denials ? 0 : -ENOMEM;
}

static int unpack_numbers(struct unpack *unpack, struct report *report)
{
        const char *id = unpack_text(unpack);

        report->reason = (enum reason)unpack_number_below(unpack, REASON_MAX_);
        report->code = (int)unpack_number_below(unpack, 256);
        report->signal = (int)unpack_number_below(unpack, 128);
        report->not_found = unpack_number_below(unpack, 2);
        report->not_executable = unpack_number_below(unpack, 2);
        report->output_lost = unpack_number_below(unpack, 2);
        report->kill_pending = unpack_number_below(unpack, 2);
        report->captured = unpack_number_below(unpack, 2);
        report->has_result = unpack_number_below(unpack, 2);
        report->started_at.tv_sec = (time_t)unpack_number(unpack);
        report->started_at.tv_nsec = (long)unpack_number_below(unpack, NSEC_PER_SEC);
        report->setup_time = unpack_number(unpack);
        report->run_time = unpack_number(unpack);
        report->cpu_user = unpack_number(unpack);
        report->cpu_system = unpack_number(unpack);
        report->memory_peak = unpack_number(unpack);
        report->processes_peak = unpack_number(unpack);
        report->bytes_in = unpack_number(unpack);
        unpack_limits(unpack, &report->limits);
        if (!unpack_number_below(unpack, 2))
                report->policy = cbx_policy_unref(report->policy);
        report->caged = unpack_number_below(unpack, 2);
        report->unboxed = (enum plan_unboxed)unpack_number_below(unpack, PLAN_UNBOXED_MAX_);
        report->landlock_abi = (int)unpack_number_below(unpack, 1000);
        report->cgroup = unpack_number_below(unpack, CGROUP_MEANS_MAX_);
        report->obstacle = unpack_number_below(unpack, CGROUP_OBSTACLE_MAX_);
        report->id = id ? strdup(id) : NULL;
        return id && !report->id ? -ENOMEM : 0;
}

int wire_unpack_report(struct wire_message *message, struct report *report)
{
        struct unpack unpack = UNPACK_INIT(message->body, message->length);
        uint64_t length = unpack_number(&unpack);
        const char *rest, *end = unpack.end;
        size_t n_files = 0;
        int r;

        if (unpack.bad || length > (uint64_t)(unpack.end - unpack.at))
                return -EPROTO;
        rest = unpack.at + length;
        unpack.end = rest;
        r = unpack_numbers(&unpack, report);
        if (r == 0)
                r = unpack_lists(&unpack, report);
        for (int i = 0; r == 0 && i < STREAMS; i++)
                r = take_output(&unpack, message, &n_files, &rest, end, &report->output[i]);
        if (r < 0)
                return r;
        return unpack_is_whole(&unpack) && rest == end ? 0 : -EPROTO;
}
