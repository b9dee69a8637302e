/* SPDX-License-Identifier: MIT */
#include "cli/options.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "policy/inputs.h"
#include "tool/toolbox.h"

const char options_help[] =
        "Files:   --workspace DIR    writable, the start directory; protected names hold\n"
        "         --read PATH[:BOX]  shown read-only   --write PATH[:BOX]  shown writable\n"
        "         --hide PATH        not shown         --tmpfs PATH[=SIZE] empty, private\n"
        "         --protect NAME     --unprotect NAME  --no-system  hide /usr, /etc\n"
        "         --hold PATH        stays as it is in whatever the box may write\n"
        "Network: --net none|loopback|host             (none)\n"
        "Env:     --env NAME=VALUE   set               --env NAME          pass on\n"
        "Limits:  --timeout SEC (30) --cpu SEC  --cpus N  --memory SIZE (512M)\n"
        "         --processes N (128)  --open-files N (768)  --file-size SIZE (1G)\n"
        "         --tmp-size SIZE (64M)  --output SIZE  --capture SIZE (100K)\n"
        "Calls:   --allow-syscall NAME  --deny-syscall NAME  --on-denied errno|kill\n"
        "Policy:  --policy FILE      --require GUARANTEE  --best-effort\n"
        "         --box auto|namespaces|landlock      what the box is made of (auto)\n";

enum kind {
        SET_TEXT,    /* text as it is; "none" becomes null where `none` says so */
        SET_NUMBER,  /* seconds */
        SET_INTEGER, /* a count */
        APPEND,      /* text into a list */
        APPEND_PATH, /* PATH or PATH:BOX into a list */
        SET_PATH,
        APPEND_TMPFS,
        VARIABLE,
        POLICY_FILE,
        UNPROTECT,
};

static const struct option {
        const char *name;
        enum kind kind;
        const char *section, *key; /* NULL section: at the top */
        bool none;
} table[] = {
        { "--workspace", SET_PATH, "files", "workspace", false },
        { "--read", APPEND_PATH, "files", "read", false },
        { "--write", APPEND_PATH, "files", "write", false },
        { "--hide", APPEND, "files", "hide", false },
        { "--tmpfs", APPEND_TMPFS, "files", "tmpfs", false },
        { "--protect", APPEND, "files", "protect", false },
        { "--unprotect", UNPROTECT, NULL, NULL, false },
        { "--hold", APPEND, "files", "hold", false },
        { "--box", SET_TEXT, NULL, "box", false },
        { "--net", SET_TEXT, NULL, "network", false },
        { "--env", VARIABLE, "environment", NULL, false },
        { "--timeout", SET_NUMBER, "limits", "wall", false },
        { "--cpu", SET_NUMBER, "limits", "cpu", true },
        { "--cpus", SET_NUMBER, "limits", "cpus", true },
        { "--memory", SET_TEXT, "limits", "memory", true },
        { "--processes", SET_INTEGER, "limits", "processes", true },
        { "--file-size", SET_TEXT, "limits", "file_size", true },
        { "--open-files", SET_INTEGER, "limits", "open_files", true },
        { "--tmp-size", SET_TEXT, "limits", "tmp_size", false },
        { "--output", SET_TEXT, "limits", "output", true },
        { "--capture", SET_TEXT, "limits", "capture", false },
        { "--allow-syscall", APPEND, "syscalls", "allow", false },
        { "--deny-syscall", APPEND, "syscalls", "deny", false },
        { "--on-denied", SET_TEXT, "syscalls", "on_denied", false },
        { "--require", APPEND, NULL, "require", false },
        { "--policy", POLICY_FILE, NULL, NULL, false },
};

static const struct {
        const char *name, *key;
        bool value;
} flags[] = {
        { "--no-system", "system", false },
        { "--best-effort", "best_effort", true },
};

void options_free(struct options *options)
{
        json_decref(options->policy);
        free(options->file);
        for (size_t i = 0; i < options->n_unprotect; i++)
                free(options->unprotect[i]);
        free(options->unprotect);
        for (size_t i = 0; i < options->n_origins; i++)
                free(options->origins[i].where);
        free(options->origins);
        *options = (struct options){ 0 };
}

int options_value(int argc, char **argv, int *index, const char *name, cbx_error *error,
                  const char **ret_value)
{
        const char *arg = argv[*index];
        size_t n = strlen(name);

        if (strncmp(arg, name, n) != 0 || (arg[n] != '\0' && arg[n] != '='))
                return 0;
        if (arg[n] == '=') {
                *ret_value = arg + n + 1;
                *index += 1;
                return 1;
        }
        if (*index + 1 >= argc)
                return error_set(error, -EINVAL, name, "needs a value");
        *ret_value = argv[*index + 1];
        *index += 2;
        return 1;
}

/* The object `section` of the policy, made where it is missing. */
static json_t *section_of(struct options *options, const char *section)
{
        json_t *object;

        if (!options->policy)
                options->policy = json_object();
        if (!section)
                return options->policy;
        object = json_object_get(options->policy, section);
        if (!object && json_object_set_new(options->policy, section, json_object()) == 0)
                object = json_object_get(options->policy, section);
        return object;
}

/* Remember which option a place in the JSON comes from. `index` < 0: not in a list. */
static int remember(struct options *options, const struct option *option, long index)
{
        void *origins =
                reallocarray(options->origins, options->n_origins + 1, sizeof(*options->origins));
        char suffix[32] = "";

        if (!origins)
                return -ENOMEM;
        options->origins = origins;
        if (index >= 0)
                snprintf(suffix, sizeof(suffix), "[%ld]", index);
        if (asprintf(&options->origins[options->n_origins].where, "%s%s%s%s",
                     option->section ? option->section : "", option->section ? "." : "",
                     option->key, suffix) < 0)
                return -ENOMEM;
        snprintf(options->origins[options->n_origins].option, sizeof(options->origins->option),
                 "%s", option->name);
        options->n_origins++;
        return 0;
}

static int set_value(struct options *options, const struct option *option, json_t *value)
{
        json_t *section = section_of(options, option->section);

        if (!section || !value || json_object_set_new(section, option->key, value) < 0)
                return -ENOMEM;
        return remember(options, option, -1);
}

static int append_value(struct options *options, const struct option *option, json_t *value)
{
        json_t *section = section_of(options, option->section), *list;

        list = section ? json_object_get(section, option->key) : NULL;
        if (section && !list && json_object_set_new(section, option->key, json_array()) == 0)
                list = json_object_get(section, option->key);
        if (!list || !value || json_array_append_new(list, value) < 0)
                return -ENOMEM;
        return remember(options, option, (long)json_array_size(list) - 1);
}

/* PATH or PATH:/BOX. Where there is something of that whole name, which a box may have made, it is
 * not guessed which of the two is meant. */
static int read_path(const struct option *option, const char *text, cbx_error *error,
                     json_t **ret_value)
{
        const char *colon = NULL;
        struct stat st;

        for (const char *at = text; (at = strstr(at, ":/")); at++)
                colon = at;
        if (colon && lstat(text, &st) == 0) {
                error_set(error, -EINVAL, option->name,
                          "\"%.200s\" may be that path, or \"%.*s\" shown as \"%.100s\"", text,
                          (int)MIN(colon - text, 100), text, colon + 1);
                error_hint(error, "write it in a policy file: {\"host\": ..., \"box\": ...}");
                return -EINVAL;
        }
        *ret_value = colon ? json_pack("{s:s#, s:s}", "host", text, (int)(colon - text), "box",
                                       colon + 1)
                           : json_string(text);
        return 0;
}

int options_show(struct options *options, const char *host, const char *box, cbx_error *error)
{
        static const struct option option = { "--read", APPEND_PATH, "files", "read", false };
        json_t *value = box ? json_pack("{s:s, s:s}", "host", host, "box", box) : json_string(host);

        return append_value(options, &option, value) < 0 ? error_oom(error) : 0;
}

static json_t *tmpfs_value(const char *text)
{
        const char *equals = strrchr(text, '=');

        if (!equals)
                return json_string(text);
        return json_pack("{s:s#, s:s}", "path", text, (int)(equals - text), "size", equals + 1);
}

bool options_is_number(const char *text, bool fraction)
{
        static const char digits[] = "0123456789";
        size_t n = strspn(text, digits);
        bool good = n > 0;

        text += n;
        if (fraction && *text == '.') { /* before or after it there may be nothing, not both */
                n = strspn(++text, digits);
                good |= n > 0;
                text += n;
        }
        if (good && fraction && (*text == 'e' || *text == 'E')) {
                text += text[1] == '+' || text[1] == '-' ? 2 : 1;
                n = strspn(text, digits);
                good = n > 0;
                text += n;
        }
        return good && !*text;
}

static int take_number(struct options *options, const struct option *option, const char *value,
                       cbx_error *error)
{
        bool whole = option->kind == SET_INTEGER;
        long long integer;
        double number;

        errno = 0;
        integer = whole ? strtoll(value, NULL, 10) : 0;
        number = whole ? 0 : strtod(value, NULL);
        /* What is too small for its exponent is a number as well, though strtod() says ERANGE. */
        if (!options_is_number(value, !whole) || (whole && errno) || !isfinite(number)) {
                error_set(error, -EINVAL, option->name, "\"%.64s\" is no %s", value,
                          whole                              ? "whole number"
                          : strcmp(option->key, "cpus") == 0 ? "number of processors"
                                                             : "number of seconds");
                error_hint(error, "write digits, such as %s", whole ? "64" : "10 or 0.25");
                return -EINVAL;
        }
        return set_value(options, option, whole ? json_integer(integer) : json_real(number));
}

static int take_variable(struct options *options, const struct option *option, const char *value,
                         cbx_error *error)
{
        const char *equals = strchr(value, '=');
        struct option place = *option;
        _cleanup_free_ char *name = equals ? strndup(value, (size_t)(equals - value)) : NULL;
        json_t *set, *environment = section_of(options, "environment");

        if (!equals) {
                place.key = "pass";
                return append_value(options, &place, json_string(value));
        }
        if (!name || !environment)
                return -ENOMEM;
        set = json_object_get(environment, "set");
        if (!set && json_object_set_new(environment, "set", json_object()) == 0)
                set = json_object_get(environment, "set");
        if (!set)
                return -ENOMEM;
        if (!*name)
                return error_set(error, -EINVAL, option->name, "\"%s\" has no name", value);
        if (json_object_set_new(set, name, json_string(equals + 1)) < 0)
                return -ENOMEM;
        place.key = "set";
        return remember(options, &place, -1);
}

static int take_unprotect(struct options *options, const char *value)
{
        char **names = reallocarray(options->unprotect, options->n_unprotect + 2, sizeof(*names));

        if (!names)
                return -ENOMEM;
        options->unprotect = names;
        names[options->n_unprotect] = strdup(value);
        if (!names[options->n_unprotect])
                return -ENOMEM;
        names[++options->n_unprotect] = NULL;
        return 0;
}

static int take(struct options *options, const struct option *option, const char *value,
                cbx_error *error)
{
        json_t *path = NULL;
        int r;

        if (!text_is_valid(value))
                return error_set(error, -EILSEQ, option->name,
                                 "has a byte in it that is no UTF-8: a policy cannot name it");
        if (option->none && strcmp(value, "none") == 0)
                return set_value(options, option, json_null());
        switch (option->kind) {
        case SET_PATH:
                options->workspace = true;
                r = read_path(option, value, error, &path);
                return r < 0 ? r : set_value(options, option, path);
        case SET_TEXT:
                return set_value(options, option, json_string(value));
        case SET_NUMBER:
        case SET_INTEGER:
                return take_number(options, option, value, error);
        case APPEND:
                return append_value(options, option, json_string(value));
        case APPEND_PATH:
                r = read_path(option, value, error, &path);
                return r < 0 ? r : append_value(options, option, path);
        case APPEND_TMPFS:
                return append_value(options, option, tmpfs_value(value));
        case VARIABLE:
                return take_variable(options, option, value, error);
        case UNPROTECT:
                return take_unprotect(options, value);
        case POLICY_FILE:
                if (options->file)
                        return error_set(error, -EINVAL, option->name, "was given twice");
                options->file = strdup(value);
                return options->file ? 0 : -ENOMEM;
        }
        return 0;
}

int options_take(struct options *options, int argc, char **argv, int *index, cbx_error *error)
{
        const char *value = "";
        int r;

        for (size_t i = 0; i < ARRAY_SIZE(flags); i++)
                if (strcmp(argv[*index], flags[i].name) == 0) {
                        json_t *top = section_of(options, NULL);

                        if (!top || json_object_set_new(top, flags[i].key,
                                                        json_boolean(flags[i].value)) < 0)
                                return error_oom(error);
                        *index += 1;
                        return 1;
                }
        for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
                r = options_value(argc, argv, index, table[i].name, error, &value);
                if (r == 0)
                        continue;
                if (r > 0) {
                        r = take(options, &table[i], value, error);
                        if (r == -ENOMEM) /* jansson takes no text that is not UTF-8 either */
                                return error_set(error, -EINVAL, table[i].name,
                                                 "its value is not valid UTF-8 text");
                }
                return r < 0 ? r : 1;
        }
        return 0;
}

/* ---- Putting file and options together ---- */

static json_t *read_policy_file(const char *path, const char *where, cbx_error *error)
{
        _cleanup_free_ char *text = NULL;
        json_t *json = NULL;
        size_t length;
        int r;

        r = file_read(AT_FDCWD, path, MIB + 1, &text, &length);
        if (r == -EFBIG)
                error_set(error, r, where, "%s is larger than 1 MiB", path);
        else if (r < 0)
                error_set(error, r, where, "cannot read %s: %s", path, strerror(-r));
        else if (policy_json_parse(text, length, "the policy", error, &json) < 0)
                return NULL;
        return json;
}

/* Lists are appended, other values replaced. Origins of appended items move along. */
static int merge(struct options *options, json_t *base, const json_t *over, const char *path)
{
        const char *key;
        json_t *value;

        json_object_foreach((json_t *)over, key, value)
        {
                json_t *old = json_object_get(base, key);
                char where[128];

                snprintf(where, sizeof(where), "%s%s%s", path, *path ? "." : "", key);
                if (json_is_object(old) && json_is_object(value)) {
                        if (merge(options, old, value, where) < 0)
                                return -ENOMEM;
                } else if (json_is_array(old) && json_is_array(value)) {
                        size_t shift = json_array_size(old);

                        for (size_t i = 0; i < options->n_origins; i++) {
                                char *origin = options->origins[i].where, *moved;
                                size_t n = strlen(where);

                                if (strncmp(origin, where, n) != 0 || origin[n] != '[')
                                        continue;
                                if (asprintf(&moved, "%s[%zu]", where,
                                             shift + (size_t)atol(origin + n + 1)) < 0)
                                        return -ENOMEM;
                                free(origin);
                                options->origins[i].where = moved;
                        }
                        if (json_array_extend(old, value) < 0)
                                return -ENOMEM;
                } else if (json_object_set(base, key, value) < 0) {
                        return -ENOMEM;
                }
        }
        return 0;
}

/* --protect and --unprotect change the default list unless the file has one of its own. */
static int spell_out_protection(const struct options *options, json_t *policy)
{
        json_t *files = json_object_get(policy, "files"), *names;
        json_t *added = json_object_get(json_object_get(options->policy, "files"), "protect");

        if ((!added && options->n_unprotect == 0) || (files && !json_is_object(files)) ||
            json_object_get(files, "protect"))
                return 0;
        if (!files && json_object_set_new(policy, "files", json_object()) == 0)
                files = json_object_get(policy, "files");
        names = json_array();
        for (const char *const *name = policy_protect_default; names && *name; name++)
                json_array_append_new(names, json_string(*name));
        return json_object_set_new(files, "protect", names) < 0 ? -ENOMEM : 0;
}

/* Take a name, or all below it, from the list. */
static int unprotect(json_t *names, const char *name, cbx_error *error)
{
        size_t before = json_array_size(names), length = strlen(name);

        for (size_t i = before; i-- > 0;) {
                const char *text = json_string_value(json_array_get(names, i));

                if (text && policy_anywhere(text) && !policy_anywhere(name))
                        text = policy_anywhere(text);
                if (text && strncmp(text, name, length) == 0 && strchr("/", text[length]))
                        json_array_remove(names, i);
        }
        if (json_array_size(names) == before)
                return error_set(error, -EINVAL, "--unprotect", "\"%s\" is not protected", name);
        return 0;
}

/* A verb may have another idea of how long a call is by default. */
static int set_wall(const struct options *options, json_t *policy)
{
        json_t *limits = json_object_get(policy, "limits");

        if (options->wall <= 0 || (limits && !json_is_object(limits)) ||
            json_object_get(limits, "wall"))
                return 0;
        if (!limits && json_object_set_new(policy, "limits", json_object()) == 0)
                limits = json_object_get(policy, "limits");
        return json_object_set_new(limits, "wall", json_real(options->wall)) < 0 ? -ENOMEM : 0;
}

void options_guard(struct options *options, const char *what, const char *path, const char *option,
                   bool secret)
{
        if (path && options->n_inputs < OPTIONS_INPUTS_MAX)
                options->inputs[options->n_inputs++] =
                        (struct options_input){ what, path, option, secret };
}

static int hold_inputs(const struct options *options, cbx_policy **policy, cbx_error *error)
{
        int r = 0;

        if (options->file)
                r = inputs_hold(policy, "the policy", options->file,
                                options->argument ? "" : "--policy", error);
        if (r == 0)
                r = inputs_hold_own(policy, NULL, error);
        for (size_t i = 0; r == 0 && i < options->n_inputs; i++) {
                const struct options_input *input = &options->inputs[i];

                r = (input->secret ? inputs_hide : inputs_hold)(policy, input->what, input->path,
                                                                input->option, error);
        }
        return r;
}

int options_policy(struct options *options, cbx_error *error, cbx_policy **ret_policy)
{
        _cleanup_policy_ cbx_policy *made = NULL;
        _cleanup_json_ json_t *policy = NULL;
        int r = 0;

        policy = options->file ? read_policy_file(options->file,
                                                  options->argument ? "" : "--policy", error)
                               : json_object();
        if (!policy)
                return options->file ? -EINVAL : error_oom(error);
        if (!json_is_object(policy))
                return policy_from_json(policy, error, ret_policy); /* says what it should be */
        if (spell_out_protection(options, policy) < 0 ||
            (options->policy && merge(options, policy, options->policy, "") < 0) ||
            set_wall(options, policy) < 0)
                return error_oom(error);
        for (size_t i = 0; r == 0 && i < options->n_unprotect; i++)
                r = unprotect(json_object_get(json_object_get(policy, "files"), "protect"),
                              options->unprotect[i], error);
        if (r == 0)
                r = policy_from_json(policy, error, &made);
        if (r == 0)
                r = options_check_holds(made, error);
        if (r == 0)
                r = hold_inputs(options, &made, error);
        if (r == 0)
                *ret_policy = TAKE_PTR(made);
        return r;
}

const json_t *options_held(const struct options *options)
{
        return json_object_get(json_object_get(options->policy, "files"), "hold");
}

int cli_guard_tools(const struct options *options, cbx_toolbox *toolbox, cbx_error *error)
{
        int r = options->file ? toolbox_hold(toolbox, options->file, false) : 0;
        const json_t *held;
        size_t index;

        for (size_t i = 0; r == 0 && i < options->n_inputs; i++)
                if (!inputs_is_stream(options->inputs[i].path))
                        r = toolbox_hold(toolbox, options->inputs[i].path,
                                         options->inputs[i].secret);
        json_array_foreach(options_held(options), index, held)
        {
                if (r == 0 && json_is_string(held))
                        r = toolbox_hold(toolbox, json_string_value(held), false);
        }
        return r < 0 ? error_oom(error) : 0;
}

/* Let the text name an option where it names the JSON path that the option became. */
static void name_option(const char *where, const char *option, cbx_error *error)
{
        static const char part[] = "abcdefghijklmnopqrstuvwxyz_.[]0123456789";
        size_t length = strlen(where);
        char text[sizeof(error->text)];

        if (!strchr(where, '.')) /* "box" and "network" are words as well */
                return;
        for (char *at = error->text; (at = strstr(at, where)); at++) {
                if ((at > error->text && strchr(part, at[-1])) ||
                    (at[length] && strchr(part, at[length])))
                        continue;
                snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - error->text), error->text,
                         option, at + length);
                memcpy(error->text, text, sizeof(text));
                at += MIN(strlen(option), strlen(at)) - 1; /* it may hold the path's own name */
        }
}

void options_blame(const struct options *options, cbx_error *error)
{
        for (size_t i = 0; i < options->n_origins; i++)
                name_option(options->origins[i].where, options->origins[i].option, error);
        for (size_t i = 0; i < options->n_origins; i++) {
                size_t n = strlen(options->origins[i].where);

                const char *where = options->origins[i].where;
                size_t length = strlen(error->where);

                /* The place itself, something inside it, or the list that it is an item of. */
                if ((strncmp(error->where, where, n) == 0 && strchr(".[", error->where[n])) ||
                    (length > 0 && strncmp(error->where, where, length) == 0 &&
                     where[length] == '[')) {
                        snprintf(error->where, sizeof(error->where), "%s",
                                 options->origins[i].option);
                        if (strcmp(error->hint, "null means no limit") == 0)
                                error_hint(error, "\"none\" means no limit");
                        return;
                }
        }
}
