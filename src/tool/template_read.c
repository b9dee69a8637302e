/* SPDX-License-Identifier: MIT */
/* Reading a template: every mistake is told, and what passes can be expanded in every call. */
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tool/template.h"

#define NESTED_MAX 4      /* "when" within "when" */
#define ELEMENTS_MAX 1024 /* of a template, and as many placeholders in them */

struct reader {
        const struct template_context *context;
        struct template *root;         /* has the list of files */
        const char *given[NESTED_MAX]; /* arguments that are there: of each "when" around */
        unsigned nested;
        size_t elements, placeholders; /* so far */
};

static int note(const struct reader *reader, cbx_error *error)
{
        tool_mistake_add(reader->context->mistakes, error);
        return -EINVAL;
}

static const json_t *property_of(const struct reader *reader, const char *name)
{
        return json_object_get(json_object_get(reader->context->schema, "properties"), name);
}

static void suggest_property(const struct reader *reader, const char *name, cbx_error *error)
{
        json_t *properties = json_object_get(reader->context->schema, "properties");
        size_t n = json_object_size(properties), i = 0;
        const char **names = calloc(n + 1, sizeof(*names)), *key, *near;
        json_t *value;

        if (!names)
                return;
        json_object_foreach(properties, key, value)
        {
                names[i++] = key;
        }
        near = json_nearest(name, (struct json_words){ names, n, sizeof(*names) });
        if (near)
                error_hint(error, "did you mean {%s}?", near);
        else
                error_hint(error, "add it to inputSchema.properties; a brace that is meant as "
                                  "such is written twice");
        free(names);
}

static bool is_required(const struct reader *reader, const char *name)
{
        json_t *required = json_object_get(reader->context->schema, "required"), *item;
        size_t i;

        json_array_foreach(required, i, item)
        {
                if (json_is_string(item) && strcmp(json_string_value(item), name) == 0)
                        return true;
        }
        return false;
}

/* What types of value a property allows, by its own words; bits of 1 << json_type. */
static unsigned types_of(const json_t *property)
{
        static const struct {
                const char *name;
                unsigned types;
        } names[] = {
                { "string", 1U << JSON_STRING },
                { "integer", 1U << JSON_INTEGER },
                { "number", 1U << JSON_INTEGER | 1U << JSON_REAL },
                { "boolean", 1U << JSON_TRUE | 1U << JSON_FALSE },
                { "null", 1U << JSON_NULL },
                { "array", 1U << JSON_ARRAY },
                { "object", 1U << JSON_OBJECT },
        };
        json_t *type = json_object_get(property, "type"), *values, *item;
        unsigned types = 0;
        size_t i;

        for (i = 0; i < ARRAY_SIZE(names); i++) {
                size_t k;

                if (json_is_string(type) && strcmp(json_string_value(type), names[i].name) == 0)
                        types |= names[i].types;
                json_array_foreach(type, k, item)
                {
                        if (json_is_string(item) &&
                            strcmp(json_string_value(item), names[i].name) == 0)
                                types |= names[i].types;
                }
        }
        values = json_object_get(property, "enum");
        json_array_foreach(type ? NULL : values, i, item)
        {
                types |= 1U << json_typeof(item);
        }
        if (!type && !values && json_object_get(property, "const"))
                types = 1U << json_typeof(json_object_get(property, "const"));
        return types;
}

#define SCALARS                                                                                    \
        (1U << JSON_STRING | 1U << JSON_INTEGER | 1U << JSON_REAL | 1U << JSON_TRUE |              \
         1U << JSON_FALSE)

/* Is there such an argument, of such a type, in every call in which this element counts? */
static int check_argument(const struct reader *reader, const struct json_place *at,
                          const char *name, unsigned allowed, const char *wanted)
{
        const json_t *property = property_of(reader, name);
        cbx_error error = CBX_ERROR_INIT;
        unsigned types;

        if (reader->context->mistakes->cut)
                return -EINVAL; /* nobody will see what is found */
        if (!property) {
                json_set_refusal(at, &error, "{%s} is no property of inputSchema", name);
                suggest_property(reader, name, &error);
                return note(reader, &error);
        }
        types = types_of(property);
        if (allowed && (types == 0 || (types & ~(allowed | 1U << JSON_NULL)) != 0)) {
                json_set_refusal(at, &error, "{%s} must have a type of %s in inputSchema", name,
                                 wanted);
                error_hint(&error,
                           "name one \"type\" there; an array goes by {\"each\": \"%s\"}, "
                           "anything else by {\"json\": \"%s\"}",
                           name, name);
                return note(reader, &error);
        }
        for (unsigned i = 0; i < reader->nested; i++)
                if (strcmp(reader->given[i], name) == 0)
                        return 0;
        if ((types & 1U << JSON_NULL) ||
            (!is_required(reader, name) &&
             !(reader->context->defaults && json_object_get(property, "default")))) {
                json_set_refusal(at, &error, "{%s} may be missing from a call", name);
                error_hint(&error,
                           "make it required, give it a default and the manifest "
                           "\"applyDefaults\", or write {\"when\": \"%s\", \"then\": [...]}",
                           name);
                return note(reader, &error);
        }
        return 0;
}

static int add_part(struct element *element, enum part_kind kind, const char *text, size_t length)
{
        struct part *parts =
                reallocarray(element->parts, element->n_parts + 1, sizeof(*element->parts));

        if (!parts)
                return -ENOMEM;
        element->parts = parts;
        parts[element->n_parts] = (struct part){ .kind = kind, .text = strndup(text, length) };
        return parts[element->n_parts++].text ? 0 : -ENOMEM;
}

/* The placeholder that begins behind the brace at `s`; moves behind its end. */
static int read_placeholder(struct reader *reader, const struct json_place *at, const char **s,
                            struct element *element)
{
        size_t length = strcspn(*s, "{}");
        cbx_error error = CBX_ERROR_INIT;
        const char *name = *s;
        int r;

        if (name[length] != '}' || length == 0) {
                json_set_refusal(at, &error,
                                 "a brace begins a placeholder that has no end or no "
                                 "name");
                error_hint(&error, "a brace that is meant as such is written twice: {{ or }}");
                return note(reader, &error);
        }
        *s += length + 1;
        if (++reader->placeholders > ELEMENTS_MAX) {
                json_set_refusal(at, &error, "there are more than %d placeholders", ELEMENTS_MAX);
                return note(reader, &error);
        }
        r = add_part(element, PART_VALUE, name, length);
        if (r < 0)
                return r;
        return check_argument(reader, at, element->parts[element->n_parts - 1].text, SCALARS,
                              "string, number, integer or boolean");
}

static int read_parts(struct reader *reader, json_t *value, const struct json_place *at,
                      struct element *element)
{
        cbx_error error = CBX_ERROR_INIT;
        _cleanup_buffer_ struct buffer fixed = BUFFER_INIT;
        const char *s;
        size_t bytes = 0; /* of fixed text */
        int r, worst = 0;

        if (json_read_string(value, at, &error, &s) < 0)
                return note(reader, &error);
        while (r = 0, *s) {
                if ((s[0] == '{' || s[0] == '}') && s[1] == s[0]) {
                        r = buffer_add(&fixed, s, 1);
                        s += 2;
                        bytes++;
                } else if (*s == '{') {
                        s++;
                        if (fixed.length > 0)
                                r = add_part(element, PART_TEXT, fixed.data, fixed.length);
                        fixed.length = 0;
                        if (r == 0)
                                r = read_placeholder(reader, at, &s, element);
                        if (r == -EINVAL && element->n_parts == 0)
                                return r; /* not even a name: what follows makes no sense */
                } else if (*s == '}') {
                        json_set_refusal(at, &error, "a brace ends nothing");
                        error_hint(&error, "a brace that is meant as such is written twice: }}");
                        return note(reader, &error);
                } else {
                        r = buffer_add(&fixed, s++, 1);
                        bytes++;
                }
                if (r == -ENOMEM)
                        return r;
                worst = r < 0 ? r : worst;
        }
        if (bytes > TEMPLATE_ARGUMENT_MAX) {
                json_set_refusal(at, &error, "is too long for a command line");
                return note(reader, &error);
        }
        if (fixed.length > 0 || element->n_parts == 0)
                r = add_part(element, PART_TEXT, fixed.length > 0 ? fixed.data : "", fixed.length);
        return worst < 0 ? worst : r;
}

static int read_file_element(struct reader *reader, json_t *value, const struct json_place *at,
                             struct element *element)
{
        const char *directory = reader->context->directory, *name;
        cbx_error error = CBX_ERROR_INIT;
        char path[PATH_MAX], joined[PATH_MAX];
        struct stat facts;
        int length;

        if (json_read_string(value, at, &error, &name) < 0)
                return note(reader, &error);
        if (name[0] != '/' && !directory) {
                json_set_refusal(at, &error,
                                 "\"%.200s\" is relative, and there is no directory "
                                 "of the manifest",
                                 name);
                error_hint(&error, "name the file by an absolute path");
                return note(reader, &error);
        }
        length = snprintf(joined, sizeof(joined), "%s%s%s", name[0] == '/' ? "" : directory,
                          name[0] == '/' ? "" : "/", name);
        if (length >= (int)sizeof(joined) || !realpath(joined, path) || stat(path, &facts) < 0 ||
            S_ISDIR(facts.st_mode)) {
                json_set_refusal(at, &error, "there is no file \"%.200s\"%s", name,
                                 name[0] == '/' ? "" : " beside the manifest");
                return note(reader, &error);
        }
        if (list_add(&reader->root->files, path) < 0)
                return -ENOMEM;
        return add_part(element, PART_TEXT, path, strlen(path));
}

static int read_list(struct reader *reader, json_t *list, const struct json_place *at,
                     struct template *template);

static int read_name(const struct reader *reader, json_t *value, const struct json_place *at,
                     struct element *element)
{
        cbx_error error = CBX_ERROR_INIT;
        const char *name;

        if (json_read_string(value, at, &error, &name) < 0)
                return note(reader, &error);
        element->name = strdup(name);
        return element->name ? 0 : -ENOMEM;
}

static int read_when(struct reader *reader, json_t *object, const struct json_place *at,
                     struct element *element)
{
        struct json_place when = { .parent = at, .key = "when" },
                          then = { .parent = at, .key = "then" };
        cbx_error error = CBX_ERROR_INIT;
        int r = read_name(reader, json_object_get(object, "when"), &when, element), inner;

        if (r < 0)
                return r;
        if (!property_of(reader, element->name)) {
                json_set_refusal(&when, &error, "\"%s\" is no property of inputSchema",
                                 element->name);
                suggest_property(reader, element->name, &error);
                r = note(reader, &error);
        }
        if (!json_is_array(json_object_get(object, "then")) || reader->nested == NESTED_MAX) {
                json_set_refusal(&then, &error,
                                 reader->nested == NESTED_MAX ? "is nested too deeply"
                                                              : "must be an array of arguments");
                return note(reader, &error);
        }
        element->then = calloc(1, sizeof(*element->then));
        if (!element->then)
                return -ENOMEM;
        reader->given[reader->nested++] = element->name;
        inner = read_list(reader, json_object_get(object, "then"), &then, element->then);
        reader->nested--;
        return inner < 0 ? inner : r;
}

/* An element that is an object: what it is shows by its first key. */
static int read_object(struct reader *reader, json_t *object, const struct json_place *at,
                       struct element *element)
{
        static const struct form {
                const char *key, *other; /* what may stand beside it */
                enum element_kind kind;
        } forms[] = {
                { "value", "dash", ELEMENT_PARTS }, { "each", "dash", ELEMENT_EACH },
                { "json", "dash", ELEMENT_JSON },   { "file", NULL, ELEMENT_PARTS },
                { "when", "then", ELEMENT_WHEN },
        };
        const struct form *form = NULL;
        cbx_error error = CBX_ERROR_INIT;
        struct json_place place = { .parent = at }, dash = { .parent = at, .key = "dash" };
        json_t *value;
        int r = 0, keys;

        for (size_t i = 0; i < ARRAY_SIZE(forms) && !form; i++)
                if (json_object_get(object, forms[i].key))
                        form = &forms[i];
        if (!form) {
                json_set_refusal(at, &error, "is no argument");
                error_hint(&error, "an object has one of: value, each, json, file, when");
                return note(reader, &error);
        }
        keys = tool_mistakes_keys(
                object, at, (struct json_words){ &form->key, form->other ? 2 : 1, sizeof(char *) },
                reader->context->mistakes);
        element->kind = form->kind;
        place.key = form->key;
        value = json_object_get(object, form->key);
        if (strcmp(form->key, "value") == 0)
                r = read_parts(reader, value, &place, element);
        else if (strcmp(form->key, "file") == 0)
                r = read_file_element(reader, value, &place, element);
        else if (strcmp(form->key, "when") == 0)
                r = read_when(reader, object, at, element);
        else
                r = read_name(reader, value, &place, element);
        if (r == 0 && form->kind == ELEMENT_EACH)
                r = check_argument(reader, &place, element->name, 1U << JSON_ARRAY, "array");
        if (r == 0 && form->kind == ELEMENT_JSON)
                r = check_argument(reader, &place, element->name, 0, "");
        value = form->other && strcmp(form->other, "dash") == 0 ? json_object_get(object, "dash")
                                                                : NULL;
        if (value && json_read_bool(value, &dash, &error, &element->dash) < 0)
                r = note(reader, &error);
        return r < 0 ? r : keys;
}

static int read_list(struct reader *reader, json_t *list, const struct json_place *at,
                     struct template *template)
{
        cbx_error error = CBX_ERROR_INIT;
        json_t *item;
        int worst = 0;
        size_t i;

        reader->elements += json_array_size(list);
        if (reader->elements > ELEMENTS_MAX) {
                json_set_refusal(at, &error, "has more than %d elements", ELEMENTS_MAX);
                return note(reader, &error);
        }
        template->elements = calloc(json_array_size(list) + 1, sizeof(*template->elements));
        if (!template->elements)
                return -ENOMEM;
        json_array_foreach(list, i, item)
        {
                struct json_place place = { .parent = at, .index = i };
                struct element *element = &template->elements[template->n++];
                int r;

                if (json_is_object(item)) {
                        r = read_object(reader, item, &place, element);
                } else if (json_is_string(item)) {
                        r = read_parts(reader, item, &place, element);
                } else {
                        json_set_refusal(&place, &error, "must be a string or an object, not %s",
                                         json_type_str(item));
                        r = note(reader, &error);
                }
                if (r == -ENOMEM)
                        return r;
                worst = r < 0 ? r : worst;
        }
        return worst;
}

int template_read(json_t *list, const struct json_place *at, const struct template_context *context,
                  struct template **ret_template)
{
        struct template *template = calloc(1, sizeof(*template));
        struct reader reader = { .context = context, .root = template };
        cbx_error error = CBX_ERROR_INIT;
        int r;

        if (!template)
                return -ENOMEM;
        template->files = list_new();
        if (!template->files) {
                r = -ENOMEM;
        } else if (!json_is_array(list)) {
                json_set_refusal(at, &error, "must be an array of arguments, not %s",
                                 json_type_str(list));
                r = note(&reader, &error);
        } else {
                r = read_list(&reader, list, at, template);
        }
        if (r < 0) {
                template_free(template);
                return r;
        }
        *ret_template = template;
        return 0;
}
