#include "kube/request/selection.h"

#include "base/xalloc.h"

enum { PARSED_BYTES = 320, ARENA_BYTES_MAX = 4 << 20 };

static struct slice text_of(const void *value)
{
    const struct kube_selection *selection = value;
    return slice_of(selection->bytes, selection->text_len);
}

void kube_selections_init(struct kube_selections *selections, uint64_t seed)
{
    hash_map_init(&selections->known, text_of, seed);
    selections->freed = 0;
}

void kube_selections_fini(struct kube_selections *selections)
{
    assert(selections->known.count == 0);
    hash_map_fini(&selections->known);
}

static void selection_free(struct kube_selection *selection)
{
    arena_fini(&selection->arena);
    free(selection);
}

static struct kube_selection *selection_new(struct slice label_text, struct slice field_text,
                                            bool custom)
{
    size_t text_len = label_text.len + 1 + field_text.len + 1;
    size_t parsed = PARSED_BYTES + 2 * text_len;
    struct kube_selection *s = xcalloc(1, sizeof(*s) + text_len + parsed);
    slice_copy(s->bytes, label_text);
    slice_copy(s->bytes + label_text.len + 1, field_text);
    s->bytes[text_len - 1] = custom;
    s->label_len = (uint32_t)label_text.len;
    s->text_len = (uint32_t)text_len;
    s->refs = 1;
    arena_init(&s->arena, s->bytes + text_len, parsed, ARENA_BYTES_MAX);
    return s;
}

static enum status parse(struct kube_selection *s, const struct kube_kind *kind,
                         struct error *error)
{
    struct slice text = text_of(s);
    size_t field_at = s->label_len + 1, field_len = text.len - 1 - field_at;
    if (s->label_len)
        TRY(label_selector_parse(&s->arena, slice_sub(text, 0, s->label_len), &s->labels, error));
    if (field_len)
        TRY(field_selector_parse(&s->arena, slice_sub(text, field_at, field_len), kind, &s->fields,
                                 error));
    /* A text such as "," has no requirements. */
    if (s->labels && label_selector_is_empty(s->labels))
        s->labels = NULL;
    if (s->fields && field_selector_is_empty(s->fields))
        s->fields = NULL;
    s->selects = s->labels || s->fields;
    return ST_OK;
}

/* The same text can be invalid for another kind, so the fields are checked each time. */
enum status kube_selection_get(struct kube_selections *selections, struct slice label_text,
                               struct slice field_text, const struct kube_kind *kind,
                               struct kube_selection **ret_selection, struct error *error)
{
    if (label_text.len > LABEL_SELECTOR_BYTES_MAX || field_text.len > FIELD_SELECTOR_BYTES_MAX)
        return error_set(error, ST_LIMIT, "a selector has at most %d bytes",
                         LABEL_SELECTOR_BYTES_MAX);
    struct kube_selection *s = selection_new(label_text, field_text, kind->flags & KUBE_CUSTOM);
    enum status status = parse(s, kind, error);
    struct kube_selection *known = hash_map_get(&selections->known, text_of(s));
    void *replaced;
    s->selections = selections;
    if (status == ST_OK && !known)
        status = hash_map_put(&selections->known, s, &replaced);
    /* The text is wrong, or another request uses the same one, whose result is shared. */
    if (status != ST_OK || known)
        selection_free(s);
    if (status != ST_OK)
        return status;
    *ret_selection = known ? kube_selection_ref(known) : s;
    return ST_OK;
}

struct kube_selection *kube_selection_ref(struct kube_selection *selection)
{
    selection->refs++;
    return selection;
}

void kube_selection_unref(struct kube_selection *selection)
{
    if (!selection || --selection->refs)
        return;
    struct kube_selections *selections = selection->selections;
    (void)hash_map_remove(&selections->known, text_of(selection));
    selection_free(selection);
    selections->freed++;
}

bool kube_selection_matches(const struct kube_selection *selection,
                            const struct kube_object *object)
{
    return (!selection->labels || label_selector_matches(selection->labels, object->labels)) &&
           (!selection->fields || field_selector_matches(selection->fields, object));
}
