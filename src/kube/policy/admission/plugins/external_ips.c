/*
 * DenyServiceExternalIPs: a service gets no external addresses besides those that it has, because
 * traffic to such an address reaches the service wherever it was meant to go. Off by default.
 */
#include "base/slices.h"
#include "kube/policy/admission/plugins/plugins.h"

/* The addresses of a service, in order. False: there is no memory. */
static bool read_addresses(struct arena *arena, const struct json_node *service,
                           struct slice **ret_addresses, size_t *ret_count)
{
    const struct json_node *list = json_node_path(service, "spec.externalIPs");
    size_t count = 0;
    struct slice *addresses = arena_calloc(arena, list ? list->count + 1 : 1, sizeof(*addresses));
    if (!addresses)
        return false;
    for (const struct json_node *item = json_node_items(list); item; item = item->next)
        if (json_node_text(item, arena, &addresses[count++]) != ST_OK)
            return false;
    slices_sort(addresses, count);
    *ret_addresses = addresses;
    *ret_count = count;
    return true;
}

static bool check(struct kube_admission_write *write)
{
    struct slice *now, *had;
    size_t count, had_count;
    if (!read_addresses(write->arena, write->object, &now, &count) ||
        !read_addresses(write->arena, write->old, &had, &had_count))
        return kube_fail_engine(write->status, ST_NOMEM);
    for (size_t i = 0; i < count; i++)
        if (!slices_have(had, had_count, now[i]))
            return kube_admission_forbid(write,
                                         "Use of external IPs is denied by admission control");
    return true;
}

const struct kube_admission_plugin kube_external_ips = {
    .name = "DenyServiceExternalIPs",
    .is_optional = true,
    .rules = {{"", "services", "", KUBE_ON_CREATE | KUBE_ON_UPDATE}},
    .check = check,
};
