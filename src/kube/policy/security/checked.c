#include "kube/policy/security/checked.h"

#include "base/slices.h"

/* -- Texts -- */

void pod_put(struct pod_checked *c, struct slice text)
{
    if (buf_append(&c->detail, text) != ST_OK)
        c->no_memory = true;
}

void pod_put_text(struct pod_checked *c, const char *text)
{
    pod_put(c, slice_from_text(text));
}

void pod_words_add(struct pod_checked *c, struct pod_words *words, struct slice text)
{
    if (words->count == words->room) {
        size_t room = words->room ? 2 * words->room : 8;
        struct slice *items = arena_alloc(c->arena, room * sizeof(*items));
        if (!items) {
            c->no_memory = true;
            return;
        }
        if (words->count)
            memcpy(items, words->items, words->count * sizeof(*items));
        words->items = items;
        words->room = room;
    }
    words->items[words->count++] = text;
}

void pod_words_sort(struct pod_words *words)
{
    size_t kept = 0;
    slices_sort(words->items, words->count);
    for (size_t i = 0; i < words->count; i++)
        if (!kept || !slice_equal(words->items[i], words->items[kept - 1]))
            words->items[kept++] = words->items[i];
    words->count = kept;
}

void pod_put_joined(struct pod_checked *c, const struct pod_words *words, const char *between)
{
    for (size_t i = 0; i < words->count; i++) {
        if (i)
            pod_put_text(c, between);
        pod_put(c, words->items[i]);
    }
}

void pod_put_quoted(struct pod_checked *c, const struct pod_words *words)
{
    pod_put_text(c, words->count ? "\"" : "");
    pod_put_joined(c, words, "\", \"");
    pod_put_text(c, words->count ? "\"" : "");
}

const char *pod_plural(size_t count, const char *one, const char *more)
{
    return count == 1 ? one : more;
}

void pod_put_containers(struct pod_checked *c, const struct pod_words *names)
{
    pod_put_text(c, pod_plural(names->count, "container ", "containers "));
    pod_put_quoted(c, names);
}

/* -- The pod -- */

struct slice pod_text_of(struct pod_checked *c, const struct json_node *node)
{
    struct slice text;
    if (json_node_text(node, c->arena, &text) == ST_OK)
        return text;
    c->no_memory = true;
    return SLICE_EMPTY;
}

struct slice pod_name_of(struct pod_checked *c, const struct json_node *item)
{
    return pod_text_of(c, json_node_named(item, "name"));
}

void pod_containers_next(struct pod_containers *containers)
{
    static const char *const lists[] = {"initContainers", "containers", "ephemeralContainers"};
    containers->now = containers->now ? containers->now->next : NULL;
    while (!containers->now && containers->list < COUNT_OF(lists))
        containers->now =
            json_node_items(json_node_named(containers->spec, lists[containers->list++]));
}

struct pod_containers pod_containers_of(const struct pod_checked *c)
{
    struct pod_containers containers = {.spec = c->spec};
    pod_containers_next(&containers);
    return containers;
}
