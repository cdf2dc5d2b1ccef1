/* vigil_kube_discover: the requests that fill a table of resources (discovery.h). */
#include "kubeclient/call/call.h"
#include "kubeclient/discovery/discovery.h"

struct discover_call {
    struct vigil_kube_call call;
    struct discovery_table *table; /* owned: what is known so far */
    struct discovery_paths paths;
    size_t at;  /* in their texts: the next one */
    bool found; /* a document was read */
};

static void release(struct vigil_kube_call *call)
{
    struct discover_call *d = CONTAINER_OF(call, struct discover_call, call);
    discovery_table_free(TAKE(d->table));
    buf_fini(&d->paths.texts);
}

static enum status set_next(struct discover_call *d)
{
    struct slice path = slice_from_text((const char *)d->paths.texts.ptr + d->at);
    d->at += path.len + 1;
    return kube_call_set_target(&d->call, path);
}

static enum status go_on(struct discover_call *d)
{
    if (d->at < d->paths.texts.len)
        return set_next(d);
    discovery_publish(d->call.kube->constants->discovery, TAKE(d->table));
    return ST_OK;
}

static enum status end(struct vigil_kube_call *call, struct error *error)
{
    struct discover_call *d = CONTAINER_OF(call, struct discover_call, call);
    TRY(discovery_table_read(d->table, buf_slice(&call->received), &d->paths, error));
    buf_fini(&call->received);
    d->found = true;
    return go_on(d);
}

/* As in client-go, a server may have only one of /api and /apis; and the resources of a group are
 * missing while its own server is down. */
static bool on_refused(struct vigil_kube_call *call, const struct exchange_result *result)
{
    struct discover_call *d = CONTAINER_OF(call, struct discover_call, call);
    bool is_root = !memchr(call->target.ptr + 1, '/', call->target.len - 1);
    bool is_needed = is_root ? result->http_code != 404 : result->http_code == 401;
    bool is_last = d->at == d->paths.texts.len;
    return !is_needed && (d->found || !is_last) && go_on(d) == ST_OK;
}

static enum status set_up(struct discover_call *d)
{
    static const char roots[] = "/api\0/apis";
    TRY(discovery_table_new(&d->table));
    TRY(buf_append(&d->paths.texts, slice_of(roots, sizeof(roots))));
    return set_next(d);
}

vigil_kube_call *vigil_kube_discover(vigil_kube *kube)
{
    static const struct kube_call_ops ops = {.end = end, .refused = on_refused, .release = release};
    struct vigil_kube_call *call = kube_call_create(kube, "GET", sizeof(struct discover_call));
    struct error error = {0};
    if (!call)
        return NULL;
    call->ops = &ops;
    call->accept = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,"
                   "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
                   "application/json";
    return kube_call_finish(call, set_up(CONTAINER_OF(call, struct discover_call, call)), &error);
}

int vigil_kube_find_resource(vigil_kube *kube, const char *name, vigil_kube_resource *ret_resource)
{
    return name ? discovery_find(kube->constants->discovery, name, ret_resource)
                : VIGIL_ERROR_ARGUMENT;
}

vigil_kube_target vigil_kube_resource_target(const vigil_kube_resource *resource,
                                             const char *name_space)
{
    return (vigil_kube_target){
        .group = resource->group,
        .version = resource->version,
        .resource = resource->resource,
        .name_space = resource->namespaced ? name_space : NULL,
    };
}
