/* SPDX-License-Identifier: MIT */
/* The "environment" section. */
#include <string.h>

#include "policy/policy_parts.h"

/* The kernel takes no longer string in argv or the environment (MAX_ARG_STRLEN), the NUL
 * included. */
#define VARIABLE_MAX (128 * KIB)

/*
 * Names by which a program can be made to load or run something else than what it was asked to. A
 * trailing "*" stands for any end. The list errs on the side of a warning.
 */
static const char *const risky[] = {
        /* The dynamic linker and the C library. */
        "LD_*",
        "DYLD_*",
        "GLIBC_TUNABLES",
        "GCONV_PATH",
        "LOCPATH",
        "NLSPATH",
        "HOSTALIASES",
        "RESOLV_HOST_CONF",
        "MALLOC_*",
        /* Shells: files to source, commands to run, how to split words. */
        "BASH_ENV",
        "BASH_FUNC_*",
        "BASHOPTS",
        "SHELLOPTS",
        "ENV",
        "IFS",
        "CDPATH",
        "GLOBIGNORE",
        "PROMPT_COMMAND",
        "PS4",
        "FPATH",
        "ZDOTDIR",
        /* Interpreters and virtual machines. */
        "PYTHON*",
        "NODE_OPTIONS",
        "NODE_PATH",
        "NODE_REPL_*",
        "PERL5*",
        "PERLLIB",
        "PERL_*",
        "RUBYOPT",
        "RUBYLIB",
        "GEM_*",
        "BUNDLE_*",
        "LUA_*",
        "PHPRC",
        "PHP_INI_SCAN_DIR",
        "TCLLIBPATH",
        "AWKPATH",
        "AWKLIBPATH",
        "GUILE_*",
        "JULIA_*",
        "R_*",
        "ERL_*",
        "JAVA_TOOL_OPTIONS",
        "JDK_JAVA_OPTIONS",
        "_JAVA_OPTIONS",
        "CLASSPATH",
        "DOTNET_*",
        "COMPlus_*",
        "CORECLR_*",
        "COR_*",
        /* Compilers, build tools and package managers. */
        "GCC_EXEC_PREFIX",
        "COMPILER_PATH",
        "MAVEN_*",
        "GRADLE_*",
        "MAKEFILES",
        "MAKEFLAGS",
        "GNUMAKEFLAGS",
        "RUSTC*",
        "RUSTFLAGS",
        "CARGO_*",
        "GOFLAGS",
        "GOTOOLDIR",
        "PIP_*",
        "npm_config_*",
        "NPM_CONFIG_*",
        /* Commands that other programs run, and files that name such commands. */
        "GIT_*",
        "EDITOR",
        "VISUAL",
        "PAGER",
        "MANPAGER",
        "BROWSER",
        "LESSOPEN",
        "LESSCLOSE",
        "VIMINIT",
        "EXINIT",
        "SSH_ASKPASS",
        "SUDO_ASKPASS",
        "RSYNC_RSH",
        "INPUTRC",
        /* Plug-ins of libraries. */
        "OPENSSL_*",
        "GTK_MODULES",
        "GTK_PATH",
        "GIO_*",
        "QT_PLUGIN_PATH",
        "GST_PLUGIN_*",
};

bool policy_variable_is_risky(const char *name)
{
        for (size_t i = 0; i < ARRAY_SIZE(risky); i++) {
                size_t length = strlen(risky[i]);

                if (risky[i][length - 1] == '*' ? strncmp(name, risky[i], length - 1) == 0
                                                : strcmp(name, risky[i]) == 0)
                        return true;
        }
        return false;
}

void policy_variable_clear(struct policy_variable *variable)
{
        free(variable->name);
        free(variable->value);
        *variable = (struct policy_variable){ 0 };
}

bool policy_variable_is_name(const char *name)
{
        static const char rest[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
                                   "0123456789";

        return name[0] != '\0' && !(name[0] >= '0' && name[0] <= '9') &&
               name[strspn(name, rest)] == '\0';
}

static int add_variable(cbx_policy *policy, const char *name, const char *value,
                        const struct json_place *at, cbx_error *error)
{
        struct policy_variable *variables, *variable;

        if (!policy_variable_is_name(name))
                return json_refuse(at, error,
                                   "\"%.64s\" is not a name: letters, digits and \"_\", "
                                   "no digit first",
                                   name);
        if (strlen(name) + (value ? strlen(value) : 0) + sizeof("=") > VARIABLE_MAX)
                return json_refuse(at, error, "is longer than the kernel's %llu bytes",
                                   VARIABLE_MAX);
        if (policy->n_variables == POLICY_VARIABLES_MAX)
                return json_refuse(at, error, "a policy has at most %d variables",
                                   POLICY_VARIABLES_MAX);

        variables = reallocarray(policy->variables, policy->n_variables + 1, sizeof(*variables));
        if (!variables)
                return error_oom(error);
        policy->variables = variables;
        variable = &variables[policy->n_variables++];
        variable->name = strdup(name);
        variable->value = value ? strdup(value) : NULL;
        return variable->name && (variable->value || !value) ? 0 : error_oom(error);
}

static int read_passed(json_t *value, const struct json_place *at, cbx_error *error, void *policy)
{
        const char *name;
        int r;

        r = json_read_string(value, at, error, &name);
        return r < 0 ? r : add_variable(policy, name, NULL, at, error);
}

static int read_pass(json_t *value, const struct json_place *at, cbx_error *error, void *policy)
{
        return json_read_array(value, at, read_passed, error, policy);
}

static int read_set(json_t *value, const struct json_place *at, cbx_error *error, void *policy)
{
        const char *name, *text;
        json_t *item;

        if (!json_is_object(value))
                return json_refuse_type(at, error, "an object", value);
        json_object_foreach(value, name, item)
        {
                struct json_place place = { .parent = at, .key = name };
                int r = json_read_string(item, &place, error, &text);

                if (r < 0)
                        return r;
                r = add_variable(policy, name, text, &place, error);
                if (r < 0)
                        return r;
        }
        return 0;
}

int policy_read_environment(json_t *value, const struct json_place *at, cbx_error *error,
                            void *policy)
{
        static const struct json_field fields[] = { { "pass", read_pass }, { "set", read_set } };

        return json_read_fields(value, at, fields, ARRAY_SIZE(fields), error, policy);
}

/* By name; of two with the same name, the one that is passed comes first. */
static int compare_variables(const void *a, const void *b)
{
        const struct policy_variable *x = a, *y = b;
        int order = strcmp(x->name, y->name);

        return order != 0 ? order : (x->value != NULL) - (y->value != NULL);
}

int policy_finish_variables(cbx_policy *policy, cbx_error *error)
{
        struct policy_variable *variables = policy->variables;
        size_t kept = 0;

        if (policy->n_variables == 0)
                return 0;
        qsort(variables, policy->n_variables, sizeof(variables[0]), compare_variables);
        for (size_t i = 1; i < policy->n_variables; i++) {
                const char *name = variables[i].name;
                char where[JSON_PATH_MAX] = "environment.set";

                if (strcmp(variables[i - 1].name, name) != 0 || !variables[i].value)
                        continue;
                json_path_add_key(where, name, strlen(name));
                return error_set(error, -EINVAL, where, "\"%.128s\" is both set and passed on",
                                 name);
        }
        for (size_t i = 0; i < policy->n_variables; i++)
                if (kept > 0 && strcmp(variables[kept - 1].name, variables[i].name) == 0)
                        policy_variable_clear(&variables[i]);
                else
                        variables[kept++] = variables[i];
        policy->n_variables = kept;
        return 0;
}
