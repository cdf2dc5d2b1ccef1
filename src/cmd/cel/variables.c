#include "cmd/cel/variables.h"

#include "io/whole_file.h"
#include "yaml/yaml.h"

/* How many bytes the value at the beginning has: up to a comma outside brackets and texts. */
static size_t value_length(struct slice list)
{
    size_t depth = 0;
    bool quoted = false;
    for (size_t i = 0; i < list.len; i++) {
        uint8_t byte = list.ptr[i];
        /* The escaped character may be a quote, which then does not end the text. */
        if (quoted && byte == '\\')
            i++;
        else if (byte == '"')
            quoted = !quoted;
        else if (!quoted && (byte == '[' || byte == '{'))
            depth++;
        else if (!quoted && (byte == ']' || byte == '}') && depth)
            depth--;
        else if (!quoted && !depth && byte == ',')
            return i;
    }
    return list.len;
}

static bool is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++) {
        uint8_t byte = name.ptr[i];
        bool is_letter =
            (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
        if (!is_letter && (i == 0 || byte < '0' || byte > '9'))
            return false;
    }
    return name.len > 0;
}

static const struct cel_type *type_of(struct cel_value value)
{
    bool is_known = value.kind >= CEL_BOOL && value.kind <= CEL_STRING;
    return is_known ? cel_value_type(value) : &cel_type_DYN;
}

static enum status add(struct cel_variables *variables, struct slice name,
                       const struct json_node *node, struct error *error)
{
    if (variables->count == CEL_VARIABLES_MAX)
        return error_set(error, ST_LIMIT, "there are more than %d variables", CEL_VARIABLES_MAX);
    for (uint32_t i = 0; i < variables->count; i++)
        if (slice_equal(variables->declared[i].name, name))
            return error_set(error, ST_INVALID, "the variable %.*s is given twice",
                             SLICE_ARGS(name));
    struct cel_value value = cel_of_json(&variables->work, node);
    if (cel_is_error(value))
        return error_set(error, ST_INVALID, "the variable %.*s: %.*s", SLICE_ARGS(name),
                         SLICE_ARGS(cel_text(value)));
    variables->values[variables->count] = value;
    variables->declared[variables->count++] = (struct cel_variable){name, type_of(value)};
    return ST_OK;
}

enum status cel_variables_add(struct cel_variables *variables, struct slice list,
                              struct error *error)
{
    while (list.len) {
        struct slice name = slice_cut(&list, '=');
        if (!is_name(name) || !list.len)
            return error_set(error, ST_INVALID, "--var must be NAME=JSON, not \"%.*s\"",
                             (int)size_min(name.len, 100), (const char *)name.ptr);
        size_t len = value_length(list);
        struct slice text = slice_sub(list, 0, len);
        size_t behind = len + (len < list.len);
        list = slice_sub(list, behind, list.len - behind);
        struct json_node *node;
        struct error why;
        if (json_tree_read(variables->work.arena, text, &node, &why) != ST_OK)
            return error_set(error, ST_INVALID,
                             "the value of --var %.*s is not JSON: %s; a text needs quotes: "
                             "--var '%.*s=\"text\"'",
                             SLICE_ARGS(name), why.text, SLICE_ARGS(name));
        TRY(add(variables, name, node, error));
    }
    return ST_OK;
}

enum status cel_variables_add_file(struct cel_variables *variables, const char *path,
                                   struct error *error)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_node *node;
    struct error why = {0};
    bool is_input = strcmp(path, "-") == 0;
    TRY(whole_file_read(is_input ? "/dev/stdin" : path, WHOLE_FILE_ANY, CEL_FILE_BYTES_MAX, &text,
                        error));
    if (yaml_tree_read(variables->work.arena, buf_slice(&text), &node, &why) != ST_OK)
        return error_set(error, ST_INVALID, "%.300s is neither YAML nor JSON: %s", path,
                         why.text[0] ? why.text : "it takes too much memory");
    return add(variables, SLICE_LITERAL("self"), node, error);
}
