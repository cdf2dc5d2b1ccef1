#include "kube/object/event.h"

static const struct {
    const char *core, *shown;
} names[] = {
    {"count", "deprecatedCount"},
    {"firstTimestamp", "deprecatedFirstTimestamp"},
    {"involvedObject", "regarding"},
    {"lastTimestamp", "deprecatedLastTimestamp"},
    {"message", "note"},
    {"reportingComponent", "reportingController"},
    {"source", "deprecatedSource"},
};

static enum status rename_member(struct arena *arena, struct json_node *object, const char *from,
                                 const char *to)
{
    struct json_node *member = json_node_named(object, from);
    if (!member)
        return ST_OK;
    json_node_remove(object, member);
    return json_node_set(arena, object, slice_from_text(to), member);
}

static enum status rename_all(struct arena *arena, struct json_node *object, bool show)
{
    const char *version = show ? "events.k8s.io/v1" : "v1";
    if (object->type != JSON_TYPE_OBJECT)
        return ST_MALFORMED;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        TRY(rename_member(arena, object, show ? names[i].core : names[i].shown,
                          show ? names[i].shown : names[i].core));
    struct json_node *text = json_node_new_text(arena, slice_from_text(version));
    return text ? json_node_set(arena, object, SLICE_LITERAL("apiVersion"), text) : ST_NOMEM;
}

enum status kube_event_show(struct arena *arena, struct json_node *object)
{
    return rename_all(arena, object, true);
}

enum status kube_event_store(struct arena *arena, struct json_node *object)
{
    return rename_all(arena, object, false);
}
