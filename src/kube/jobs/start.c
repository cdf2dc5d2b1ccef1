#include "kube/jobs/start.h"

#include "codec/json/writer.h"
#include "kube/merge/apply/created.h"
#include "kube/types/object/meta.h"
#include "kube/types/storage.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

struct kube_start_object {
    const char *group, *version, *resource, *namespace, *name;
    const char *json; /* without kind, apiVersion and what is set for each new object */
};

static const struct kube_start_object facts[] = {
#include "kube/jobs/start_rows.inc"
};

enum { OWN_MAX = 8 };

/* -- The objects that depend on the settings -- */

#define IP_LABELS                                                                          \
    "\"ipaddress.kubernetes.io/ip-family\":\"%s\",\"ipaddress.kubernetes.io/managed-by\":" \
    "\"ipallocator.k8s.io\""

struct maker {
    struct arena *arena;
    const struct kube_start_settings *settings;
    struct kube_start_object *objects;
    size_t count;
    char first[KUBE_ADDRESS_TEXT_BYTES]; /* the address of the service kubernetes */
    bool failed;
};

PRINTF_LIKE(2, 3)
static const char *format(struct maker *m, const char *text, ...)
{
    va_list values;
    va_start(values, text);
    int len = vsnprintf(NULL, 0, text, values);
    va_end(values);
    char *made = arena_alloc(m->arena, (size_t)len + 1);
    if (!made) {
        m->failed = true;
        return "";
    }
    va_start(values, text);
    vsnprintf(made, (size_t)len + 1, text, values);
    va_end(values);
    return made;
}

static void add(struct maker *m, struct kube_start_object object)
{
    assert(m->count < OWN_MAX);
    m->objects[m->count++] = object;
}

static const char *family(const struct kube_address *address)
{
    return address->is_v6 ? "IPv6" : "IPv4";
}

static void add_range(struct maker *m)
{
    char range[KUBE_RANGE_TEXT_BYTES];
    kube_range_format(&m->settings->services, range);
    add(m, (struct kube_start_object){
               "networking.k8s.io", "v1", "servicecidrs", "", "kubernetes",
               format(m,
                      "{\"spec\":{\"cidrs\":[\"%s\"]},\"status\":{\"conditions\":[{\"type\":"
                      "\"Ready\",\"status\":\"True\",\"lastTransitionTime\":null,\"reason\":\"\","
                      "\"message\":\"Kubernetes default Service CIDR is ready\"}]}}",
                      range)});
}

static void add_service(struct maker *m)
{
    add(m, (struct kube_start_object){
               "", "v1", "services", "default", "kubernetes",
               format(m,
                      "{\"metadata\":{\"labels\":{\"component\":\"apiserver\",\"provider\":"
                      "\"kubernetes\"}},\"spec\":{\"ports\":[{\"name\":\"https\",\"protocol\":"
                      "\"TCP\",\"port\":443,\"targetPort\":%u}],\"clusterIP\":\"%s\","
                      "\"clusterIPs\":[\"%s\"],\"type\":\"ClusterIP\",\"sessionAffinity\":\"None\","
                      "\"ipFamilies\":[\"%s\"],\"ipFamilyPolicy\":\"SingleStack\","
                      "\"internalTrafficPolicy\":\"Cluster\"},\"status\":{\"loadBalancer\":{}}}",
                      (unsigned)m->settings->port, m->first, m->first,
                      family(&m->settings->services.base))});
}

/* As in Kubernetes, an address that only this machine can reach has no endpoints. */
static void add_endpoints(struct maker *m)
{
    char address[KUBE_ADDRESS_TEXT_BYTES];
    if (!m->settings->is_advertised)
        return;
    kube_address_format(&m->settings->advertised, address);
    add(m, (struct kube_start_object){
               "", "v1", "endpoints", "default", "kubernetes",
               format(m,
                      "{\"metadata\":{\"labels\":{\"endpointslice.kubernetes.io/skip-mirror\":"
                      "\"true\"}},\"subsets\":[{\"addresses\":[{\"ip\":\"%s\"}],\"ports\":[{"
                      "\"name\":\"https\",\"port\":%u,\"protocol\":\"TCP\"}]}]}",
                      address, (unsigned)m->settings->port)});
    add(m, (struct kube_start_object){
               "discovery.k8s.io", "v1", "endpointslices", "default", "kubernetes",
               format(m,
                      "{\"metadata\":{\"labels\":{\"kubernetes.io/service-name\":\"kubernetes\"}},"
                      "\"addressType\":\"%s\",\"endpoints\":[{\"addresses\":[\"%s\"],"
                      "\"conditions\":{\"ready\":true}}],\"ports\":[{\"name\":\"https\","
                      "\"protocol\":\"TCP\",\"port\":%u}]}",
                      family(&m->settings->advertised), address, (unsigned)m->settings->port)});
}

static enum status write_authority(struct slice pem, struct buf *to)
{
    struct json_writer w;
    json_writer_init(&w, to);
    json_begin_object(&w);
    json_member_object(&w, "data");
    json_member_string(&w, "client-ca-file", pem);
    json_end_object(&w);
    json_end_object(&w);
    return json_writer_finish(&w);
}

static void add_authority(struct maker *m)
{
    AUTO(buf_fini) struct buf text = {0};
    /* Aggregated API servers read the ConfigMap to verify clients. Without an authority there is
     * nothing to tell them. */
    if (!m->settings->client_ca.len)
        return;
    if (write_authority(m->settings->client_ca, &text) != ST_OK)
        m->failed = true;
    else
        add(m, (struct kube_start_object){
                   "", "v1", "configmaps", "kube-system", "extension-apiserver-authentication",
                   format(m, "%.*s", (int)text.len, (const char *)text.ptr)});
}

enum status kube_start_init(struct kube_start *start, const struct kube_start_settings *settings,
                            struct arena *arena, int64_t now_s)
{
    struct maker m = {.arena = arena, .settings = settings};
    struct kube_address first = kube_range_at(&settings->services, 0);
    kube_address_format(&first, m.first);
    m.objects = arena_alloc(arena, OWN_MAX * sizeof(*m.objects));
    if (!m.objects)
        return ST_NOMEM;
    add_range(&m);
    add(&m,
        (struct kube_start_object){
            "networking.k8s.io", "v1", "ipaddresses", "", format(&m, "%s", m.first),
            format(&m,
                   "{\"metadata\":{\"labels\":{" IP_LABELS "}},\"spec\":{\"parentRef\":{"
                   "\"resource\":\"services\",\"namespace\":\"default\",\"name\":\"kubernetes\"}"
                   "}}",
                   family(&m.settings->services.base))});
    add_service(&m);
    add_endpoints(&m);
    /* kube-apiserver keeps the day since which it tracks the use of old tokens of service accounts
     * in a ConfigMap. */
    struct tm utc;
    char day[16];
    time_t now = (time_t)now_s;
    strftime(day, sizeof(day), "%Y-%m-%d", gmtime_r(&now, &utc));
    add(&m, (struct kube_start_object){"", "v1", "configmaps", "kube-system",
                                       "kube-apiserver-legacy-service-account-token-tracking",
                                       format(&m, "{\"data\":{\"since\":\"%s\"}}", day)});
    add_authority(&m);
    *start = (struct kube_start){.arena = arena, .own = m.objects, .own_count = m.count};
    return m.failed ? ST_NOMEM : ST_OK;
}

/* -- All objects -- */

size_t kube_start_count(const struct kube_start *start)
{
    return start->own_count + COUNT_OF(facts);
}

static const struct kube_start_object *object_at(const struct kube_start *start, size_t place)
{
    assert(place < kube_start_count(start));
    return place < start->own_count ? &start->own[place] : &facts[place - start->own_count];
}

static const struct kube_kind *kind_of(const struct kube_start_object *object)
{
    const struct kube_kind *kind =
        kube_builtin_find(slice_from_text(object->group), slice_from_text(object->version),
                          slice_from_text(object->resource));
    assert(kind);
    return kind;
}

enum status kube_start_key(const struct kube_start *start, size_t place, struct arena *arena,
                           struct slice *ret_key)
{
    const struct kube_start_object *object = object_at(start, place);
    return kube_key_make(arena, kind_of(object)->storage_prefix, slice_from_text(object->namespace),
                         slice_from_text(object->name), ret_key);
}

/* Conditions have been true since now. */
static bool set_times(const struct kube_meta *meta, struct json_node *object)
{
    char now[KUBE_TIME_BYTES];
    struct json_node *conditions = json_node_path(object, "status.conditions");
    kube_time_text(meta->now_s, now);
    for (struct json_node *at = conditions ? json_node_first(conditions) : NULL; at;
         at = json_node_next(at))
        if (!kube_meta_set_text(meta, at, "lastTransitionTime", slice_from_text(now)))
            return false;
    return true;
}

enum status kube_start_value(const struct kube_start *start, size_t place, struct arena *arena,
                             int64_t now_s, struct random *random, struct buf *to)
{
    const struct kube_start_object *row = object_at(start, place);
    struct error error;
    struct kube_status status = {0};
    struct json_node *metadata, *object;
    struct kube_meta meta = {
        .arena = arena,
        .kind = kind_of(row),
        .namespace = slice_from_text(row->namespace),
        .now_s = now_s,
        .random = random,
        .status = &status,
    };
    TRY(json_tree_read(arena, slice_from_text(row->json), &object, &error));
    bool made = kube_meta_object(&meta, object, "metadata", &metadata) &&
                kube_meta_set_text(&meta, metadata, "name", slice_from_text(row->name)) &&
                kube_meta_check(&meta, object) &&
                (!start->owned || created_by_server(arena, meta.kind, now_s, object) == ST_OK) &&
                kube_meta_create(&meta, object) && set_times(&meta, object) &&
                kube_meta_order(&meta, object);
    return made ? json_tree_write(object, to) : ST_NOMEM;
}
