/* Node. */
#include "kube/validate/kinds.h"
#include "kube/validate/names.h"
#include "kube/validate/quantity.h"

/* Kubernetes shows its internal type. */
static void bad_taint(struct check *c, const struct at *at, struct slice key, struct slice value,
                      struct slice effect)
{
    AUTO(buf_fini) struct buf json = {0};
    if (buf_append_format(&json,
                          "{\"Key\":\"%.*s\",\"Value\":\"%.*s\",\"Effect\":\"%.*s\","
                          "\"TimeAdded\":null}",
                          (int)size_min(key.len, 400), (const char *)key.ptr,
                          (int)size_min(value.len, 400), (const char *)value.ptr,
                          (int)size_min(effect.len, 400), (const char *)effect.ptr) != ST_OK ||
        buf_append(&json, slice_of("", 1)) != ST_OK)
        c->errors->no_memory = true;
    else
        bad_repeat_why(c, at, (const char *)json.ptr,
                       "taints must be unique by key and effect pair");
}

static void check_taint(struct check *c, const struct at *at, const struct json_node *taint,
                        struct seen *seen)
{
    struct slice key = text_in(c, taint, "key"), effect = text_in(c, taint, "effect");
    struct slice pair = SLICE_EMPTY;
    char why[NAME_ERROR_BYTES];
    AUTO(buf_fini) struct buf text = {0};
    check_name(c, AT(at, "key"), key, label_key_valid);
    if (!label_value_valid(text_in(c, taint, "value"), why))
        bad_text(c, AT(at, "value"), text_in(c, taint, "value"), why);
    if (!effect.len)
        bad_required(c, AT(at, "effect"), NULL);
    else
        check_choice(c, AT(at, "effect"), effect, "NoSchedule,PreferNoSchedule,NoExecute");
    if (buf_append_format(&text, "%.*s/%.*s", SLICE_ARGS(effect), SLICE_ARGS(key)) != ST_OK ||
        arena_dup(c->arena, buf_slice(&text), &pair) != ST_OK)
        c->errors->no_memory = true;
    else if (!seen_add(c, seen, pair))
        bad_taint(c, at, key, text_in(c, taint, "value"), effect);
}

static void check_taints(struct check *c, const struct json_node *list)
{
    const struct at *at = AT(AT(NULL, "metadata"), "taints");
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = first_in(list); item; item = item->next)
        check_taint(c, AT_ITEM(at, i++), item, &seen);
}

static void check_node_amounts(struct check *c, const struct json_node *object, const char *name)
{
    const struct at *at = AT(AT(NULL, "status"), name);
    const struct json_node *amounts = member(member(object, "status"), name);
    for (const struct json_node *item = first_in(amounts); item; item = item->next) {
        char key[260];
        size_t len = size_min(item->key.len, sizeof(key) - 1);
        memcpy(key, item->key.ptr, len);
        key[len] = '\0';
        check_quantity_of(c, AT(at, key), item->key, item);
    }
}

static void check_node_update(struct check *c, const struct json_node *spec,
                              const struct json_node *old)
{
    const struct at *at = AT(NULL, "spec");
    if (filled(old, "podCIDRs") && !same_member(spec, old, "podCIDRs"))
        bad_forbidden(c, AT(at, "podCIDRs"),
                      "node updates may not change podCIDR except from \"\" to valid");
    if (text_in(c, old, "providerID").len && !same_member(spec, old, "providerID"))
        bad_forbidden(c, AT(at, "providerID"),
                      "node updates may not change providerID except from \"\" to valid");
}

void validate_node(struct check *c, const struct json_node *object, const struct json_node *old)
{
    const struct json_node *spec = member(object, "spec");
    const struct at *cidrs = AT(AT(NULL, "spec"), "podCIDRs");
    size_t i = 0;
    check_taints(c, member(spec, "taints"));
    check_node_amounts(c, object, "capacity");
    check_node_amounts(c, object, "allocatable");
    for (const struct json_node *item = first_in(member(spec, "podCIDRs")); item; item = item->next)
        check_name(c, AT_ITEM(cidrs, i++), text_of(c, item), cidr_valid);
    if (!old)
        return;
    check_node_update(c, spec, member(old, "spec"));
    /* Kubernetes reports them twice. */
    check_taints(c, member(spec, "taints"));
}

void validate_node_status(struct check *c, const struct json_node *object,
                          const struct json_node *old)
{
    (void)old;
    check_node_amounts(c, object, "capacity");
    check_node_amounts(c, object, "allocatable");
}
