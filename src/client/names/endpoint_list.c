#include "client/names/endpoint_list.h"

#include <stdio.h>
#include <stdlib.h>

enum { SRV_NAME_BYTES = 512 };

void endpoint_list_fini(struct endpoint_list *list)
{
    free(list->all);
    *list = (struct endpoint_list){0};
}

static enum status add(struct endpoint_list *list, struct slice text, struct error *error)
{
    if (list->count == ENDPOINTS_MAX)
        return error_set(error, ST_INVALID, "more than %d endpoints", ENDPOINTS_MAX);
    struct endpoint *more = realloc(list->all, (list->count + 1) * sizeof(*more));
    if (!more)
        return ST_NOMEM;
    list->all = more;
    TRY(endpoint_parse(text, &more[list->count], error));
    list->count++;
    return ST_OK;
}

enum status endpoint_list_parse(struct endpoint_list *list, const char *text, struct error *error)
{
    struct slice rest = slice_from_text(text);
    while (rest.len) {
        struct slice one = slice_trim(slice_cut(&rest, ','));
        if (one.len)
            TRY(add(list, one, error));
    }
    return list->count ? ST_OK : error_set(error, ST_INVALID, "no endpoint is given");
}

enum status endpoint_list_look_up(const struct endpoint_list *list, struct resolver *resolver,
                                  struct lookup_hooks hooks, struct lookup **ret_lookup)
{
    char name[SRV_NAME_BYTES];
    int len =
        snprintf(name, sizeof(name), "_etcd-client%s%s%s._tcp.%s", list->srv_secure ? "-ssl" : "",
                 list->srv_name ? "-" : "", list->srv_name ? list->srv_name : "", list->srv_domain);
    if (len >= (int)sizeof(name))
        return ST_INVALID;
    return resolver_lookup_srv(resolver, slice_of(name, (size_t)len), hooks, ret_lookup);
}

const char *endpoint_list_take(struct endpoint_list *list, const struct lookup_result *result)
{
    size_t count = size_min(result->target_count, ENDPOINTS_MAX);
    if (result->status != ST_OK)
        return result->reason;
    if (count == 0)
        return "the SRV records name no endpoint";
    struct endpoint *all = calloc(count, sizeof(*all));
    if (!all)
        return "out of memory";
    for (size_t i = 0; i < count; i++)
        endpoint_from_target(result->targets[i].host, result->targets[i].port, list->srv_secure,
                             &all[i]);
    free(list->all);
    list->all = all;
    list->count = count;
    return NULL;
}
