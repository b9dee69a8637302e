/* SPDX-License-Identifier: MIT */
/* A template and the arguments of a call make an argv. */
#include "tool/template.h"

#include <stdio.h>
#include <string.h>

#define ARGUMENTS_MAX (1 * MIB) /* well below the kernel's bound on all of them */
#define EXPANDED_MAX 8192

/* ---- Lifetime ---- */

static void element_clear(struct element *element)
{
        for (size_t i = 0; i < element->n_parts; i++)
                free(element->parts[i].text);
        free(element->parts);
        free(element->name);
        template_free(element->then);
}

struct template *template_free(struct template *template)
{
        if (!template)
                return NULL;
        for (size_t i = 0; i < template->n; i++)
                element_clear(&template->elements[i]);
        free(template->elements);
        list_free(template->files);
        free(template);
        return NULL;
}

const char *const *template_files(const struct template *template)
{
        return (const char *const *)template->files;
}

const char *template_program(const struct template *template)
{
        const struct element *first = template->n > 0 ? &template->elements[0] : NULL;

        return first && first->kind == ELEMENT_PARTS && first->n_parts == 1 &&
                               first->parts[0].kind == PART_TEXT && first->parts[0].text[0] != '\0'
                       ? first->parts[0].text
                       : NULL;
}

int template_words(const struct template *template, char ***list)
{
        int r = 0;

        for (size_t i = 0; r == 0 && i < template->n; i++) {
                const struct element *element = &template->elements[i];

                if (element->kind == ELEMENT_WHEN)
                        r = template_words(element->then, list);
                else if (element->kind == ELEMENT_PARTS && element->n_parts == 1 &&
                         element->parts[0].kind == PART_TEXT)
                        r = list_add(list, element->parts[0].text);
        }
        return r;
}

/* ---- Expanding ---- */

struct expansion {
        const json_t *arguments;
        struct tool_mistakes *mistakes;
        char ***argv;
        size_t bytes, n;
};

/* Where an argument is, or an item of it (NO_ITEM: the whole), as a JSON pointer. */
#define NO_ITEM SIZE_MAX

struct spot {
        const char *name;
        size_t item;
};

static int write_pointer(const struct spot *spot, struct buffer *to)
{
        int r = buffer_add(to, "/", *spot->name ? 1 : 0); /* fixed text has none */

        for (const char *s = spot->name; r == 0 && *s; s++)
                r = *s == '~' || *s == '/' ? buffer_add(to, *s == '~' ? "~0" : "~1", 2)
                                           : buffer_add(to, s, 1);
        return r == 0 && spot->item != NO_ITEM ? buffer_printf(to, "/%zu", spot->item) : r;
}

/* Noted; the others are looked at all the same. */
static int refuse(const struct expansion *to, const struct spot *spot, const char *text)
{
        _cleanup_buffer_ struct buffer where = BUFFER_INIT;
        cbx_error error = CBX_ERROR_INIT;

        if (write_pointer(spot, &where) < 0)
                return -ENOMEM;
        error_set(&error, -EINVAL, where.data, "%s", text);
        tool_mistake_add(to->mistakes, &error);
        return to->mistakes->failed ? -ENOMEM : -EINVAL;
}

/* The text of a scalar; in `room` where it is not a string. */
static const char *text_of(const json_t *value, char room[NUMBER_ROOM])
{
        switch (value ? json_typeof(value) : JSON_NULL) {
        case JSON_STRING:
                return strlen(json_string_value(value)) == json_string_length(value)
                               ? json_string_value(value)
                               : NULL;
        case JSON_INTEGER:
                snprintf(room, NUMBER_ROOM, "%" JSON_INTEGER_FORMAT, json_integer_value(value));
                return room;
        case JSON_REAL:
                json_write_number(json_real_value(value), room);
                return room;
        case JSON_TRUE:
                return "true";
        case JSON_FALSE:
                return "false";
        default:
                return NULL;
        }
}

/* -E2BIG: the whole is too long, whatever follows. */
static int add_argument(struct expansion *to, const struct spot *spot, const char *text)
{
        size_t length = strlen(text);

        if (length > TEMPLATE_ARGUMENT_MAX)
                return refuse(to, spot, "is too long for a command line");
        to->bytes += length + 1 + sizeof(char *);
        if (to->bytes > ARGUMENTS_MAX || ++to->n > EXPANDED_MAX) {
                int r = refuse(to, spot, "makes the command line too long");

                return r == -EINVAL ? -E2BIG : r;
        }
        return list_add(to->argv, text);
}

static int add_value(struct expansion *to, const struct element *element, const struct spot *spot,
                     const char *text, bool fixed)
{
        if (!text)
                return refuse(to, spot,
                              "cannot be an argument of a command: it is no text, number "
                              "or truth value, or holds a NUL");
        if (text[0] == '-' && !fixed && !element->dash)
                return refuse(to, spot,
                              "may not begin with a dash: the command could take it for "
                              "an option");
        return add_argument(to, spot, text);
}

static int expand_parts(struct expansion *to, const struct element *element)
{
        _cleanup_buffer_ struct buffer text = BUFFER_INIT;
        struct spot spot = { "", NO_ITEM };
        bool fixed = false;
        int r = 0;

        for (size_t i = 0; r == 0 && i < element->n_parts; i++) {
                const struct part *part = &element->parts[i];
                char room[NUMBER_ROOM];
                const char *piece = part->text;

                /* What is fixed at the beginning decides whether it is an option. Text behind an
                 * empty value is not at the beginning: "{from}-{to}" must not become "-rf". */
                fixed |= part->kind == PART_TEXT && i == 0;
                if (part->kind == PART_VALUE) {
                        spot.name = part->text;
                        piece = text_of(json_object_get(to->arguments, spot.name), room);
                        if (!piece)
                                return add_value(to, element, &spot, NULL, false);
                }
                r = buffer_add(&text, piece, strlen(piece));
                if (r == 0 && text.length > TEMPLATE_ARGUMENT_MAX)
                        break; /* too long already; what follows may be much longer */
        }
        if (r == 0)
                r = buffer_add(&text, "", 1);
        return r < 0 ? r : add_value(to, element, &spot, text.data, fixed);
}

static int expand_each(struct expansion *to, const struct element *element)
{
        json_t *list = json_object_get(to->arguments, element->name), *item;
        struct spot spot = { element->name, NO_ITEM };
        int worst = 0;

        if (!json_is_array(list))
                return refuse(to, &spot, "must be an array");
        json_array_foreach(list, spot.item, item)
        {
                char room[NUMBER_ROOM];
                int r = add_value(to, element, &spot, text_of(item, room), false);

                if (r < 0 && r != -EINVAL)
                        return r;
                worst = r < 0 ? r : worst;
        }
        return worst;
}

static int expand_json(struct expansion *to, const struct element *element)
{
        const json_t *value = json_object_get(to->arguments, element->name);
        _cleanup_free_ char *text = value ? json_write(value, 0) : NULL;
        struct spot spot = { element->name, NO_ITEM };

        if (!value)
                return refuse(to, &spot, "is missing");
        if (!text)
                return -ENOMEM;
        return add_value(to, element, &spot, text, false);
}

static int expand_list(struct expansion *to, const struct template *template)
{
        int r = 0, worst = 0;

        for (size_t i = 0; (r == 0 || r == -EINVAL) && i < template->n; i++) {
                const struct element *element = &template->elements[i];
                const json_t *value;

                r = 0;

                switch (element->kind) {
                case ELEMENT_PARTS:
                        r = expand_parts(to, element);
                        break;
                case ELEMENT_EACH:
                        r = expand_each(to, element);
                        break;
                case ELEMENT_JSON:
                        r = expand_json(to, element);
                        break;
                case ELEMENT_WHEN:
                        value = json_object_get(to->arguments, element->name);
                        if (value && !json_is_null(value) && !json_is_false(value))
                                r = expand_list(to, element->then);
                        break;
                }
                worst = r < 0 ? r : worst;
        }
        return worst;
}

int template_expand(const struct template *template, const json_t *arguments,
                    struct tool_mistakes *mistakes, char ***argv)
{
        struct expansion to = { .arguments = arguments, .mistakes = mistakes, .argv = argv };
        int r = expand_list(&to, template);

        return r == -E2BIG ? -EINVAL : r;
}
