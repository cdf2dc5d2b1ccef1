#include "kube/types/validate/check.h"

#include "kube/types/go_text.h"

#include <stdio.h>

/* What an error shows of a text that a client may have made as long as an object. */
static struct slice shown(struct slice text)
{
    return slice_sub(text, 0, size_min(text.len, GO_SHOWN_BYTES_MAX));
}

/* -- Paths -- */

static enum status append_path(const struct at *at, struct buf *to)
{
    if (!at)
        return ST_OK;
    /* A path is built only for an error. Its depth is that of the checks, which follow the type and
     * not the object. */
    TRY(append_path(at->up, to));
    if (at->is == AT_IS_ITEM)
        return buf_append_format(to, "[%zu]", at->index);
    if (at->is == AT_IS_KEY)
        return buf_append_format(to, "[%.*s]", SLICE_ARGS(shown(at->key)));
    return buf_append_format(to, "%s%s", to->len ? "." : "", at->name);
}

/* -- Errors -- */

static bool is_full(const struct check *c)
{
    return c->errors->count >= KUBE_FIELD_ERRORS_MAX;
}

static void add(struct check *c, const struct at *at, const char *reason, struct slice message)
{
    AUTO(buf_fini) struct buf path = {0};
    if (append_path(at, &path) != ST_OK)
        c->errors->no_memory = true;
    else
        kube_field_errors_add(c->errors, reason, buf_slice(&path), "%.*s", SLICE_ARGS(message));
}

/* "Required value", "Required value: detail" */
static void add_plain(struct check *c, const struct at *at, const char *reason, const char *title,
                      const char *detail)
{
    AUTO(buf_fini) struct buf text = {0};
    bool more = detail && detail[0];
    if (is_full(c))
        return;
    if (buf_append_format(&text, "%s%s%s", title, more ? ": " : "", more ? detail : "") != ST_OK)
        c->errors->no_memory = true;
    else
        add(c, at, reason, buf_slice(&text));
}

void bad_required(struct check *c, const struct at *at, const char *detail)
{
    add_plain(c, at, "FieldValueRequired", "Required value", detail);
}

void bad_forbidden(struct check *c, const struct at *at, const char *detail)
{
    add_plain(c, at, "FieldValueForbidden", "Forbidden", detail);
}

void bad_internal(struct check *c, const struct at *at, const char *detail)
{
    add_plain(c, at, "InternalError", "Internal error", detail);
}

enum show_as { SHOW_TEXT, SHOW_NODE, SHOW_RAW };
struct value {
    enum show_as as;
    struct slice text; /* a text, or JSON that is shown as it is */
    const struct json_node *node;
};

static enum status append_value(struct check *c, struct value value, struct buf *to)
{
    if (value.as == SHOW_TEXT)
        return go_quote(shown(value.text), to);
    if (value.as == SHOW_RAW)
        return buf_append(to, value.text);
    return value.node ? go_value_append(value.node, c->arena, to) : buf_append_text(to, "null");
}

/* "Invalid value: "x": why" */
static void add_value(struct check *c, const struct at *at, const char *reason, const char *title,
                      struct value value, const char *why)
{
    AUTO(buf_fini) struct buf text = {0};
    bool more = why && why[0];
    if (is_full(c))
        return;
    if (buf_append_format(&text, "%s: ", title) != ST_OK ||
        append_value(c, value, &text) != ST_OK ||
        buf_append_format(&text, "%s%s", more ? ": " : "", more ? why : "") != ST_OK)
        c->errors->no_memory = true;
    else
        add(c, at, reason, buf_slice(&text));
}

static void add_invalid(struct check *c, const struct at *at, struct value value, const char *why)
{
    add_value(c, at, "FieldValueInvalid", "Invalid value", value, why);
}

void bad_text(struct check *c, const struct at *at, struct slice value, const char *why)
{
    add_invalid(c, at, (struct value){.as = SHOW_TEXT, .text = value}, why);
}

void bad_texts(struct check *c, const struct at *at, struct slice value, const char *before,
               char *whys)
{
    /* Kubernetes makes an error of each reason. The check of the name gives them as one text. */
    while (whys) {
        char whole[2 * NAME_ERROR_BYTES], *end = strstr(whys, "; ");
        if (end)
            *end = '\0';
        snprintf(whole, sizeof(whole), "%s%s", before, whys);
        bad_text(c, at, value, whole);
        whys = end ? end + 2 : NULL;
    }
}

void bad_joined(struct check *c, const struct at *at, struct slice value, const char *before,
                char *whys)
{
    char whole[2 * NAME_ERROR_BYTES], *end;
    while ((end = strstr(whys, "; "))) {
        /* In some places Kubernetes joins the reasons with commas to one error. */
        end[0] = ',';
        memmove(end + 1, end + 2, strlen(end + 2) + 1);
    }
    snprintf(whole, sizeof(whole), "%s%s", before, whys);
    bad_text(c, at, value, whole);
}

void bad_omitted(struct check *c, const struct at *at, const char *why)
{
    add_plain(c, at, "FieldValueInvalid", "Invalid value", why);
}

void bad_node(struct check *c, const struct at *at, const struct json_node *value, const char *why)
{
    add_invalid(c, at, (struct value){.as = SHOW_NODE, .node = value}, why);
}

void bad_raw(struct check *c, const struct at *at, const char *json, const char *why)
{
    add_invalid(c, at, (struct value){.as = SHOW_RAW, .text = slice_from_text(json)}, why);
}

void bad_int(struct check *c, const struct at *at, int64_t value, const char *why)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    bad_raw(c, at, digits, why);
}

void bad_repeat(struct check *c, const struct at *at, struct slice value)
{
    add_value(c, at, "FieldValueDuplicate", "Duplicate value",
              (struct value){.as = SHOW_TEXT, .text = value}, NULL);
}

void bad_repeat_why(struct check *c, const struct at *at, const char *json, const char *why)
{
    add_value(c, at, "FieldValueDuplicate", "Duplicate value",
              (struct value){.as = SHOW_RAW, .text = slice_from_text(json)}, why);
}

void bad_repeat_raw(struct check *c, const struct at *at, const char *json)
{
    add_value(c, at, "FieldValueDuplicate", "Duplicate value",
              (struct value){.as = SHOW_RAW, .text = slice_from_text(json)}, NULL);
}

void bad_repeat_int(struct check *c, const struct at *at, int64_t value)
{
    char digits[24];
    snprintf(digits, sizeof(digits), "%lld", (long long)value);
    bad_repeat_raw(c, at, digits);
}

/* The next of several values that are separated by commas. */
static struct slice next_value(const char **values)
{
    size_t len = strcspn(*values, ",");
    struct slice value = slice_of(*values, len);
    *values += len + ((*values)[len] == ',');
    return value;
}

static enum status append_choices(const char *values, struct buf *to)
{
    TRY(buf_append_text(to, "supported values: "));
    for (bool first = true; first || *values; first = false) {
        struct slice value = next_value(&values);
        TRY(buf_append_format(to, "%s\"%.*s\"", first ? "" : ", ", SLICE_ARGS(value)));
    }
    return buf_append(to, slice_of("", 1));
}

static void add_choice(struct check *c, const struct at *at, struct value value, const char *values)
{
    AUTO(buf_fini) struct buf text = {0};
    if (is_full(c))
        return;
    if (append_choices(values, &text) != ST_OK)
        c->errors->no_memory = true;
    else
        add_value(c, at, "FieldValueNotSupported", "Unsupported value", value,
                  (const char *)text.ptr);
}

void bad_choice(struct check *c, const struct at *at, struct slice value, const char *values)
{
    add_choice(c, at, (struct value){.as = SHOW_TEXT, .text = value}, values);
}

void bad_choice_node(struct check *c, const struct at *at, const struct json_node *value,
                     const char *values)
{
    add_choice(c, at, (struct value){.as = SHOW_NODE, .node = value}, values);
}

void bad_choice_raw(struct check *c, const struct at *at, const char *json, const char *values)
{
    add_choice(c, at, (struct value){.as = SHOW_RAW, .text = slice_from_text(json)}, values);
}

void bad_not_found(struct check *c, const struct at *at, struct slice value, const char *detail)
{
    add_value(c, at, "FieldValueNotFound", "Not found",
              (struct value){.as = SHOW_TEXT, .text = value}, detail);
}

void bad_long(struct check *c, const struct at *at, int bytes_max)
{
    char text[64];
    snprintf(text, sizeof(text), "may not be more than %d bytes", bytes_max);
    add_plain(c, at, "FieldValueTooLong", "Too long", text);
}

void bad_many(struct check *c, const struct at *at, size_t count, int max)
{
    char text[96];
    snprintf(text, sizeof(text), "%zu: must have at most %d items", count, max);
    add_plain(c, at, "FieldValueTooMany", "Too many", text);
}

/* -- Members -- */

const struct json_node *rule_member(const struct json_node *object, const char *name)
{
    const struct json_node *node = json_node_named(object, name);
    return json_node_is_set(node) ? node : NULL;
}

const struct json_node *rule_filled(const struct json_node *object, const char *name)
{
    const struct json_node *node = rule_member(object, name);
    return node && node->first ? node : NULL;
}

struct slice rule_text_of(struct check *c, const struct json_node *node)
{
    struct slice text = SLICE_EMPTY;
    /* A number where a text is expected was refused when the object was decoded. This one is an
     * IntOrString or a quantity. */
    if (node && node->type == JSON_TYPE_NUMBER)
        return node->text;
    if (json_node_text(node, c->arena, &text) != ST_OK)
        c->errors->no_memory = true;
    return text;
}

struct slice rule_text(struct check *c, const struct json_node *object, const char *name)
{
    return rule_text_of(c, rule_member(object, name));
}

struct slice rule_trimmed(struct check *c, const struct json_node *object, const char *name)
{
    return go_trim(rule_text(c, object, name));
}

struct slice rule_lower(struct check *c, struct slice text)
{
    struct slice lower = name_lower(c->arena, text);
    c->errors->no_memory |= !lower.ptr;
    return lower;
}

bool rule_list_has(struct check *c, const struct json_node *list, const char *text)
{
    const struct json_node *item = rule_first(list);
    while (item && !slice_is(rule_text_of(c, item), text))
        item = item->next;
    return item;
}

bool rule_text_is(const struct json_node *object, const char *name, const char *text)
{
    return json_node_is_text(json_node_named(object, name), text);
}

bool rule_choice_is(const struct json_node *object, const char *name, const char *fallback,
                    const char *text)
{
    const struct json_node *node = rule_member(object, name);
    /* An empty text counts as missing, since defaulting treats it so. */
    if (node && node->text.len)
        return json_node_is_text(node, text);
    return strcmp(fallback, text) == 0;
}

int64_t rule_int_of(const struct json_node *node)
{
    int64_t value = 0;
    return node && json_node_int(node, &value) ? value : 0;
}

int64_t rule_int(const struct json_node *object, const char *name, int64_t fallback)
{
    const struct json_node *node = rule_member(object, name);
    return node ? rule_int_of(node) : fallback;
}

bool rule_truth(const struct json_node *object, const char *name)
{
    return json_node_is_true(json_node_named(object, name));
}

static bool is_nothing(const struct json_node *node)
{
    if (!node || node->type == JSON_TYPE_NULL)
        return true;
    return (node->type == JSON_TYPE_ARRAY || node->type == JSON_TYPE_OBJECT) && !node->first;
}

bool rule_same_node(const struct json_node *a, const struct json_node *b)
{
    /* Go decodes a missing list, null and an empty one to slices that Kubernetes' comparisons treat
     * as equal. */
    if (is_nothing(a) || is_nothing(b))
        return is_nothing(a) && is_nothing(b);
    return json_node_equal(a, b);
}

bool rule_same_member(const struct json_node *a, const struct json_node *b, const char *name)
{
    return rule_same_node(json_node_named(a, name), json_node_named(b, name));
}

bool rule_is_kept(const struct check *c, const struct json_node *is, const struct json_node *was)
{
    return !c->all && was && json_node_equal(is, was);
}

/* -- Texts seen before -- */

bool seen_has(const struct seen *seen, struct slice key)
{
    size_t i = 0, few = size_min(seen->count, SEEN_FEW);
    while (i < few && !slice_equal(seen->few[i], key))
        i++;
    return i < few || (seen->many && json_node_member(seen->many, key));
}

bool seen_add(struct check *c, struct seen *seen, struct slice key)
{
    struct json_node *item;
    if (seen_has(seen, key))
        return false;
    /* Most lists are short. A long one gets a table, because a client may send thousands of items
     * and comparing each with all others would take too long. */
    if (seen->count++ < SEEN_FEW) {
        seen->few[seen->count - 1] = key;
        return true;
    }
    if (!seen->many)
        seen->many = json_node_new(c->arena, JSON_TYPE_OBJECT);
    item = seen->many ? json_node_new(c->arena, JSON_TYPE_NULL) : NULL;
    if (!item || json_node_set(c->arena, seen->many, key, item) != ST_OK)
        c->errors->no_memory = true;
    return true;
}
