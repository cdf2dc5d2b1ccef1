#include "kube/validate/shown.h"

#include "kube/custom/schema/go_text.h"

static enum status append_struct(struct check *c, const struct json_node *object,
                                 const struct shown_type *type, struct buf *to);

static enum status append_list(struct check *c, const struct json_node *list,
                               const struct shown_type *type, struct buf *to)
{
    TRY(buf_append_text(to, "["));
    for (const struct json_node *item = first_in(list); item; item = item->next) {
        if (to->len > GO_SHOWN_BYTES_MAX)
            return ST_OK;
        TRY(append_struct(c, item, type, to));
        TRY(buf_append_text(to, item->next ? "," : ""));
    }
    return buf_append_text(to, "]");
}

static enum status append_member(struct check *c, const struct json_node *value,
                                 const struct shown_member *member, struct buf *to)
{
    TRY(buf_append_format(to, "\"%s\":", member->go_name));
    if (!value)
        return buf_append_text(to, member->absent);
    if (!member->type)
        return go_value_append(value, c->arena, to);
    return value->type == JSON_TYPE_ARRAY ? append_list(c, value, member->type, to)
                                          : append_struct(c, value, member->type, to);
}

/* The types are constants, so the recursion ends with them. */
static enum status append_struct(struct check *c, const struct json_node *object,
                                 const struct shown_type *type, struct buf *to)
{
    TRY(buf_append_text(to, "{"));
    for (size_t i = 0; i < type->count; i++) {
        TRY(buf_append_text(to, i ? "," : ""));
        TRY(append_member(c, member(object, type->members[i].name), &type->members[i], to));
    }
    return buf_append_text(to, "}");
}

const char *show_struct(struct check *c, const struct json_node *object,
                        const struct shown_type *type)
{
    AUTO(buf_fini) struct buf text = {0};
    struct slice kept;
    if (append_struct(c, object, type, &text) == ST_OK) {
        text.len = size_min(text.len, GO_SHOWN_BYTES_MAX);
        if (buf_append(&text, slice_of("", 1)) == ST_OK &&
            arena_dup(c->arena, buf_slice(&text), &kept) == ST_OK)
            return (const char *)kept.ptr;
    }
    c->errors->no_memory = true;
    return "";
}
