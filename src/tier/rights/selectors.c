#include "tier/rights/selectors.h"

#include "base/slices.h"
#include "kube/request/field_selector.h"
#include "kube/request/label_selector.h"

enum { TERMS_MAX = 1024 };

/* -- Labels -- */

/* A SubjectAccessReview has no operators for > and <. */
static bool is_expressible(const struct label_requirement *r)
{
    return strcmp(r->op, "Gt") != 0 && strcmp(r->op, "Lt") != 0;
}

static void write_requirement(struct json_writer *w, const struct label_requirement *r)
{
    json_begin_object(w);
    json_member_string(w, "key", r->key);
    json_member_text(w, "operator", r->op);
    if (r->value_count) {
        json_key(w, "values");
        json_strings(w, r->values, r->value_count);
    }
    json_end_object(w);
}

static void write_all(struct json_writer *w, const char *name, const struct label_requirement *list,
                      size_t count)
{
    size_t written = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_expressible(&list[i]))
            continue;
        if (!written++) {
            json_member_object(w, name);
            json_member_array(w, "requirements");
        }
        write_requirement(w, &list[i]);
    }
    if (!written)
        return;
    json_end_array(w);
    json_end_object(w);
}

void tier_write_label_selector(struct json_writer *w, struct arena *arena, struct slice text)
{
    const struct label_selector *selector;
    const struct label_requirement *list;
    struct error ignored;
    size_t count;
    if (text.len && label_selector_parse(arena, text, &selector, &ignored) == ST_OK &&
        label_selector_requirements(selector, arena, &list, &count) == ST_OK)
        write_all(w, "labelSelector", list, count);
}

/* -- Fields -- */

/* Up to the next comma that is not escaped by a backslash. */
static struct slice cut_term(struct slice *rest)
{
    size_t at = 0;
    while (at < rest->len && rest->ptr[at] != ',')
        at += rest->ptr[at] == '\\' && at + 1 < rest->len ? 2 : 1;
    struct slice term = slice_sub(*rest, 0, at);
    size_t skip = size_min(at + 1, rest->len);
    *rest = slice_sub(*rest, skip, rest->len - skip);
    return term;
}

/* False: a character must be escaped, or must not be. */
static bool unescape(struct arena *arena, struct slice *value)
{
    uint8_t *to = arena_alloc(arena, value->len + 1);
    size_t len = 0;
    if (!to)
        return false;
    for (size_t i = 0; i < value->len; i++) {
        bool escape = value->ptr[i] == '\\';
        i += escape;
        uint8_t c = i < value->len ? value->ptr[i] : 0;
        bool special = c == '\\' || c == ',' || c == '=';
        if (special != escape)
            return false;
        to[len++] = c;
    }
    *value = slice_of(to, len);
    return true;
}

/* "a=b", "a==b" and "a!=b". */
static bool read_term(struct arena *arena, struct slice term, struct label_requirement *to)
{
    size_t at = 0;
    while (at < term.len && term.ptr[at] != '=' &&
           !(term.ptr[at] == '!' && at + 1 < term.len && term.ptr[at + 1] == '='))
        at++;
    if (at == term.len)
        return false;
    bool is_long = term.ptr[at] == '!' || (at + 1 < term.len && term.ptr[at + 1] == '=');
    size_t behind = at + (is_long ? 2 : 1);
    struct slice value = slice_sub(term, behind, term.len - behind);
    struct slice *copy = arena_alloc(arena, sizeof(*copy));
    if (!copy || !unescape(arena, &value))
        return false;
    *copy = value;
    to->key = slice_sub(term, 0, at);
    to->op = term.ptr[at] == '!' ? "NotIn" : "In";
    to->values = copy;
    to->value_count = 1;
    return true;
}

static size_t count_commas(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.ptr[i] == ',';
    return count;
}

/* As kube-apiserver parses field selectors before it knows their kind: the terms are sorted. A
 * client does not need as many as would take long. */
static bool read_fields(struct arena *arena, struct slice text, struct label_requirement **ret_list,
                        size_t *ret_count)
{
    size_t count = 0;
    size_t terms_max = count_commas(text) + 1;
    if (text.len > FIELD_SELECTOR_BYTES_MAX || terms_max > TERMS_MAX)
        return false;
    struct slice *terms = arena_calloc(arena, terms_max, sizeof(*terms));
    if (!terms)
        return false;
    while (text.len) {
        terms[count] = cut_term(&text);
        count += terms[count].len != 0;
    }
    slices_sort(terms, count);
    struct label_requirement *list = arena_calloc(arena, count + 1, sizeof(*list));
    for (size_t i = 0; list && i < count; i++)
        if (!read_term(arena, terms[i], &list[i]))
            return false;
    *ret_list = list;
    *ret_count = count;
    return list != NULL;
}

void tier_write_field_selector(struct json_writer *w, struct arena *arena, struct slice text)
{
    struct label_requirement *list;
    size_t count, kept = 0;
    if (!text.len || !read_fields(arena, text, &list, &count))
        return;
    /* A review may not name an empty field. */
    for (size_t i = 0; i < count; i++)
        if (list[i].key.len)
            list[kept++] = list[i];
    write_all(w, "fieldSelector", list, kept);
}

/* A name that would change the path is ignored. */
static bool is_path_segment(struct slice name)
{
    return name.len && !slice_is(name, ".") && !slice_is(name, "..") &&
           !memchr(name.ptr, '/', name.len) && !memchr(name.ptr, '%', name.len);
}

struct slice tier_selected_name(struct arena *arena, struct slice text)
{
    struct label_requirement *list;
    size_t count;
    if (!text.len || !read_fields(arena, text, &list, &count))
        return SLICE_EMPTY;
    for (size_t i = 0; i < count; i++)
        if (slice_is(list[i].key, "metadata.name") && strcmp(list[i].op, "In") == 0)
            return is_path_segment(list[i].values[0]) ? list[i].values[0] : SLICE_EMPTY;
    return SLICE_EMPTY;
}
