#include "kube/policy/claims.h"

#include "codec/json/writer.h"

#include <stdio.h>
#include <string.h>

#define ADDRESSES "/registry/ipaddresses/"
#define PORTS "/registry/ranges/servicenodeports/"

enum { TRIES_MAX = 512, NUMBER_TEXT_BYTES = KUBE_ADDRESS_TEXT_BYTES };

bool kube_claims_concern(const struct kube_kind *kind)
{
    return !kind->group[0] && strcmp(kind->plural, "services") == 0;
}

/* -- Services -- */

static const struct json_node *spec_of(const struct json_node *service)
{
    return json_node_named(service, "spec");
}

static bool is_type(const struct json_node *service, const char *type)
{
    const struct json_node *node = json_node_named(spec_of(service), "type");
    return node && node->text.len ? json_node_is_text(node, type) : strcmp(type, "ClusterIP") == 0;
}

static bool is_set(const struct json_node *node)
{
    return node && node->type == JSON_TYPE_STRING && node->text.len;
}

static bool needs_address(const struct json_node *service)
{
    return service && !is_type(service, "ExternalName");
}

static bool needs_ports(const struct json_node *service)
{
    const struct json_node *wanted =
        json_node_named(spec_of(service), "allocateLoadBalancerNodePorts");
    if (!service || is_type(service, "NodePort"))
        return service;
    return is_type(service, "LoadBalancer") &&
           !(wanted && wanted->type == JSON_TYPE_BOOL && !wanted->truth);
}

static int64_t node_port_of(const struct json_node *port)
{
    int64_t number;
    return json_node_int(json_node_named(port, "nodePort"), &number) ? number : 0;
}

static bool has_address(const struct json_node *service, struct slice text)
{
    const struct json_node *one = json_node_path(service, "spec.clusterIP");
    const struct json_node *list = json_node_path(service, "spec.clusterIPs");
    if (one && slice_equal(one->text, text))
        return true;
    for (const struct json_node *at = list ? list->first : NULL; at; at = at->next)
        if (slice_equal(at->text, text))
            return true;
    return false;
}

static const struct json_node *first_port(const struct json_node *service)
{
    const struct json_node *ports = json_node_path(service, "spec.ports");
    return ports && ports->type == JSON_TYPE_ARRAY ? ports->first : NULL;
}

static bool has_port(const struct json_node *service, int64_t number)
{
    for (const struct json_node *at = first_port(service); at; at = at->next)
        if (node_port_of(at) == number)
            return true;
    return false;
}

/* -- Numbers -- */

static uint64_t range_size(const struct kube_claims *claims, const struct kube_claim *claim)
{
    const struct kube_service_ranges *ranges = claims->ranges;
    return claim->is_port ? (uint64_t)(ranges->port_last - ranges->port_first) + 1
                          : ranges->addresses.size;
}

static void number_text(const struct kube_claims *claims, const struct kube_claim *claim,
                        char text[NUMBER_TEXT_BYTES])
{
    if (claim->is_port) {
        snprintf(text, NUMBER_TEXT_BYTES, "%llu",
                 (unsigned long long)(claims->ranges->port_first + claim->number));
        return;
    }
    struct kube_address address = kube_range_at(&claims->ranges->addresses, claim->number);
    kube_address_format(&address, text);
}

static bool set_texts(struct kube_claims *claims, struct json_node *spec, const char *one,
                      const char *list, struct slice text)
{
    struct json_node *array = json_node_new(claims->arena, JSON_TYPE_ARRAY);
    struct json_node *item = json_node_new_text(claims->arena, text);
    struct json_node *copy = one ? json_node_new_text(claims->arena, text) : NULL;
    return array && item && json_node_insert(array, NULL, item) == ST_OK &&
           json_node_set(claims->arena, spec, slice_from_text(list), array) == ST_OK &&
           (!one ||
            (copy && json_node_set(claims->arena, spec, slice_from_text(one), copy) == ST_OK));
}

static bool set_int(struct kube_claims *claims, struct json_node *object, const char *key,
                    int64_t value)
{
    struct json_node *node = json_node_new_int(claims->arena, value);
    return node && json_node_set(claims->arena, object, slice_from_text(key), node) == ST_OK;
}

/* Writes the number of a claim into the service. */
static bool show(struct kube_claims *claims, const struct kube_claim *claim)
{
    char text[NUMBER_TEXT_BYTES];
    struct json_node *spec = json_node_named(claims->service, "spec");
    if (claim->is_port)
        return set_int(claims, json_node_item(json_node_named(spec, "ports"), claim->port_index),
                       "nodePort", (int64_t)(claims->ranges->port_first + claim->number));
    number_text(claims, claim, text);
    return set_texts(claims, spec, "clusterIP", "clusterIPs", slice_from_text(text));
}

/* -- Making claims -- */

static struct kube_claim *add(struct kube_claims *claims, struct kube_claim claim,
                              struct kube_field_errors *errors)
{
    if (claims->count == KUBE_CLAIMS_MAX) {
        kube_field_errors_add(errors, "FieldValueTooMany", SLICE_LITERAL("spec.ports"),
                              "Too many: at most %d node ports can be allocated at a time",
                              KUBE_CLAIMS_MAX - 1);
        return NULL;
    }
    claims->items[claims->count] = claim;
    return &claims->items[claims->count++];
}

/* In a service that has no other fault. */
static bool set_family(struct kube_claims *claims, struct json_node *spec)
{
    const char *family = claims->ranges->addresses.base.is_v6 ? "IPv6" : "IPv4";
    const struct json_node *families = json_node_named(spec, "ipFamilies");
    struct json_node *policy = json_node_new_text(claims->arena, SLICE_LITERAL("SingleStack"));
    if (!(families && families->count) &&
        !set_texts(claims, spec, NULL, "ipFamilies", slice_from_text(family)))
        return false;
    if (is_set(json_node_named(spec, "ipFamilyPolicy")))
        return true;
    return policy &&
           json_node_set(claims->arena, spec, SLICE_LITERAL("ipFamilyPolicy"), policy) == ST_OK;
}

static void refuse_address(struct kube_field_errors *errors, struct slice text, const char *why)
{
    int len = (int)size_min(text.len, KUBE_ADDRESS_TEXT_BYTES);
    kube_field_errors_add(errors, "FieldValueInvalid", SLICE_LITERAL("spec.clusterIPs"),
                          "Invalid value: [\"%.*s\"]: failed to allocate IP %.*s: %s", len,
                          (const char *)text.ptr, len, (const char *)text.ptr, why);
}

static bool claim_given(struct kube_claims *claims, struct slice text,
                        struct kube_field_errors *errors)
{
    struct kube_address address, base = claims->ranges->addresses.base;
    if (!kube_address_parse(text, &address) ||
        !kube_range_has(&claims->ranges->addresses, &address)) {
        refuse_address(errors, text, "the provided network does not match the current range");
        return false;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < (base.is_v6 ? 16 : 4); i++)
        number = number << 8 | (uint64_t)(address.bytes[i] ^ base.bytes[i]);
    return add(claims, (struct kube_claim){.is_given = true, .number = number - 1}, errors);
}

static bool claim_any(struct kube_claims *claims, struct kube_claim claim,
                      struct kube_field_errors *errors)
{
    claim.number = random_below(claims->random, range_size(claims, &claim));
    const struct kube_claim *added = add(claims, claim, errors);
    return added && show(claims, added);
}

/* As in Kubernetes, an omitted address stays what it was. */
static bool claim_address(struct kube_claims *claims, const struct json_node *old,
                          struct kube_field_errors *errors)
{
    struct json_node *spec = json_node_named(claims->service, "spec");
    const struct json_node *had = needs_address(old) ? json_node_path(old, "spec.clusterIP") : NULL;
    const struct json_node *wanted = json_node_named(spec, "clusterIP");
    if (!is_set(wanted)) {
        const struct json_node *list = json_node_named(spec, "clusterIPs");
        wanted = list && list->count ? list->first : is_set(had) ? had : NULL;
    }
    if (!is_set(wanted))
        return set_family(claims, spec) && claim_any(claims, (struct kube_claim){0}, errors);
    struct slice text = wanted->text;
    if (!set_texts(claims, spec, "clusterIP", "clusterIPs", text) || !set_family(claims, spec))
        return false;
    if (slice_equal(text, SLICE_LITERAL("None")) || (is_set(had) && slice_equal(had->text, text)))
        return true;
    return claim_given(claims, text, errors);
}

static bool same_port(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *p = json_node_named(a, "protocol"), *q = json_node_named(b, "protocol");
    bool tcp_a = !is_set(p) || json_node_is_text(p, "TCP");
    bool tcp_b = !is_set(q) || json_node_is_text(q, "TCP");
    bool same = tcp_a || tcp_b ? tcp_a == tcp_b : json_node_equal(p, q);
    const struct json_node *m = json_node_named(a, "port"), *n = json_node_named(b, "port");
    return same && m && n && json_node_equal(m, n);
}

/* The node port that this port had before; 0: none. */
static int64_t port_before(const struct json_node *old, const struct json_node *port)
{
    for (const struct json_node *at = needs_ports(old) ? first_port(old) : NULL; at; at = at->next)
        if (same_port(at, port))
            return node_port_of(at);
    return 0;
}

static bool refuse_port(struct kube_field_errors *errors, size_t index, int64_t number,
                        const char *why)
{
    char field[64];
    snprintf(field, sizeof(field), "spec.ports[%zu].nodePort", index);
    kube_field_errors_add(errors, "FieldValueInvalid", slice_from_text(field),
                          "Invalid value: %lld: %s", (long long)number, why);
    return false;
}

static bool claim_given_port(struct kube_claims *claims, size_t index, int64_t number,
                             struct kube_field_errors *errors)
{
    const struct kube_service_ranges *ranges = claims->ranges;
    char why[128];
    snprintf(why, sizeof(why),
             "provided port is not in the valid range. The range of valid ports is %u-%u",
             (unsigned)ranges->port_first, (unsigned)ranges->port_last);
    if (number < ranges->port_first || number > ranges->port_last)
        return refuse_port(errors, index, number, why);
    for (size_t i = 0; i < claims->count; i++) /* the same port of another protocol */
        if (claims->items[i].is_port &&
            claims->items[i].number == (uint64_t)(number - ranges->port_first))
            return true;
    return add(claims,
               (struct kube_claim){.is_port = true,
                                   .is_given = true,
                                   .port_index = index,
                                   .number = (uint64_t)(number - ranges->port_first)},
               errors);
}

static bool claim_port(struct kube_claims *claims, size_t index, struct json_node *port,
                       const struct json_node *old, struct kube_field_errors *errors)
{
    int64_t number = node_port_of(port), before = port_before(old, port);
    if (!number && before)
        return set_int(claims, port, "nodePort", before);
    if (number && needs_ports(old) && has_port(old, number))
        return true;
    if (number)
        return claim_given_port(claims, index, number, errors);
    return claim_any(claims, (struct kube_claim){.is_port = true, .port_index = index}, errors);
}

static bool claim_ports(struct kube_claims *claims, const struct json_node *old,
                        struct kube_field_errors *errors)
{
    struct json_node *ports = json_node_path(claims->service, "spec.ports");
    size_t index = 0;
    if (!ports || ports->type != JSON_TYPE_ARRAY)
        return true;
    for (struct json_node *at = ports->count ? json_node_first(ports) : NULL; at;
         at = json_node_next(at))
        if (!claim_port(claims, index++, at, old, errors))
            return false;
    return true;
}

/* -- Giving up -- */

/* A key for which there is no room is found to have no owner when another service wants it. */
static void release(struct kube_claims *claims, const char *prefix, struct slice text)
{
    if (claims->count + claims->released_count < KUBE_COMPANIONS_MAX &&
        kube_key_make(claims->arena, prefix, SLICE_EMPTY, text,
                      &claims->released[claims->released_count]) == ST_OK)
        claims->released_count++;
}

/* What `old` has and `service` does not; NULL: it has nothing. */
static void release_rest(struct kube_claims *claims, const struct json_node *old,
                         const struct json_node *service)
{
    const struct json_node *address = json_node_path(old, "spec.clusterIP");
    if (needs_address(old) && is_set(address) && !json_node_is_text(address, "None") &&
        !(needs_address(service) && has_address(service, address->text)))
        release(claims, ADDRESSES, address->text);
    for (const struct json_node *at = needs_ports(old) ? first_port(old) : NULL; at;
         at = at->next) {
        char text[24];
        int64_t number = node_port_of(at);
        snprintf(text, sizeof(text), "%lld", (long long)number);
        if (number && !(service && needs_ports(service) && has_port(service, number)))
            release(claims, PORTS, slice_from_text(text));
    }
}

void kube_claims_release(struct kube_claims *claims, struct arena *arena,
                         const struct json_node *service)
{
    *claims = (struct kube_claims){.arena = arena};
    release_rest(claims, service, NULL);
}

static bool is_balanced(const struct json_node *service)
{
    return is_type(service, "LoadBalancer");
}

static bool is_exposed(const struct json_node *service)
{
    const struct json_node *addresses = json_node_path(service, "spec.externalIPs");
    return is_type(service, "NodePort") || is_balanced(service) ||
           (addresses && addresses->count && needs_address(service));
}

/* The members that only some types need. */
static const struct typed_member {
    const char *name;
    bool (*needs)(const struct json_node *service);
} typed_members[] = {
    {"clusterIP", needs_address},
    {"clusterIPs", needs_address},
    {"ipFamilies", needs_address},
    {"ipFamilyPolicy", needs_address},
    {"internalTrafficPolicy", needs_address},
    {"externalTrafficPolicy", is_exposed},
    {"healthCheckNodePort", is_balanced},
    {"allocateLoadBalancerNodePorts", is_balanced},
    {"loadBalancerClass", is_balanced},
};

static void drop_former_ports(struct json_node *service, const struct json_node *old)
{
    struct json_node *ports = json_node_path(service, "spec.ports");
    if (!needs_ports(old) || is_type(service, "NodePort") || is_balanced(service) || !ports ||
        ports->type != JSON_TYPE_ARRAY)
        return;
    for (struct json_node *at = ports->count ? json_node_first(ports) : NULL; at;
         at = json_node_next(at)) {
        struct json_node *number = json_node_named(at, "nodePort");
        if (number && has_port(old, node_port_of(at)))
            json_node_remove(at, number);
    }
}

/* As in Kubernetes, what the former type needed goes with it, unless the client changes it. */
static void drop_former(struct json_node *service, const struct json_node *old)
{
    struct json_node *spec = json_node_named(service, "spec");
    for (size_t i = 0; i < COUNT_OF(typed_members); i++) {
        const struct typed_member *member = &typed_members[i];
        struct json_node *now = json_node_named(spec, member->name);
        const struct json_node *had = json_node_named(spec_of(old), member->name);
        if (now && had && member->needs(old) && !member->needs(service) &&
            json_node_equal(now, had))
            json_node_remove(spec, now);
    }
    drop_former_ports(service, old);
}

bool kube_claims_make(struct kube_claims *claims, const struct kube_service_ranges *ranges,
                      const struct kube_meta *meta, struct json_node *service,
                      const struct json_node *old, struct kube_field_errors *errors)
{
    struct json_node *spec = json_node_named(service, "spec");
    *claims = (struct kube_claims){.arena = meta->arena,
                                   .ranges = ranges,
                                   .random = meta->random,
                                   .service = service,
                                   .now_s = meta->now_s};
    if (!spec || spec->type != JSON_TYPE_OBJECT)
        return true; /* validation refuses it */
    if (old)
        drop_former(service, old);
    if (needs_address(service) && !claim_address(claims, old, errors))
        return false;
    if (needs_ports(service) && !claim_ports(claims, old, errors))
        return false;
    if (old)
        release_rest(claims, old, service);
    return true;
}

/* -- Writing -- */

static void write_owner(struct json_writer *w, const struct kube_claims *claims)
{
    json_key(w, "spec");
    json_begin_object(w);
    json_key(w, "parentRef");
    json_begin_object(w);
    json_key(w, "resource");
    json_text(w, "services");
    json_key(w, "namespace");
    json_string(w, claims->namespace);
    json_key(w, "name");
    json_string(w, claims->name);
    json_end_object(w);
    json_end_object(w);
}

static void write_labels(struct json_writer *w, const struct kube_claims *claims)
{
    json_key(w, "metadata");
    json_begin_object(w);
    json_key(w, "labels");
    json_begin_object(w);
    json_key(w, "ipaddress.kubernetes.io/ip-family");
    json_text(w, claims->ranges->addresses.base.is_v6 ? "IPv6" : "IPv4");
    json_key(w, "ipaddress.kubernetes.io/managed-by");
    json_text(w, "ipallocator.k8s.io");
    json_end_object(w);
    json_end_object(w);
}

/* An IPAddress as clients read it. */
static bool complete_address(struct kube_claims *claims, struct slice name,
                             struct json_node *object)
{
    struct kube_status status = {0};
    struct kube_meta meta = {
        .arena = claims->arena,
        .kind = kube_builtin_find(SLICE_LITERAL("networking.k8s.io"), SLICE_LITERAL("v1"),
                                  SLICE_LITERAL("ipaddresses")),
        .now_s = claims->now_s,
        .random = claims->random,
        .status = &status,
    };
    struct json_node *metadata = json_node_named(object, "metadata");
    return kube_meta_set_text(&meta, metadata, "name", name) && kube_meta_check(&meta, object) &&
           kube_meta_create(&meta, object) && kube_meta_order(&meta, object);
}

static enum status make_value(struct kube_claims *claims, const struct kube_claim *claim,
                              struct slice name, struct slice *ret_value)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    struct json_node *object;
    struct error error;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    if (!claim->is_port)
        write_labels(&w, claims);
    write_owner(&w, claims);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    TRY(arena_dup(claims->arena, buf_slice(&text), ret_value));
    if (claim->is_port)
        return ST_OK;
    TRY(json_tree_read(claims->arena, *ret_value, &object, &error));
    if (!complete_address(claims, name, object))
        return ST_NOMEM;
    buf_reset(&text, SIZE_MAX);
    TRY(json_tree_write(object, &text));
    return arena_dup(claims->arena, buf_slice(&text), ret_value);
}

static enum status fill(struct kube_claims *claims, struct kube_claim *claim,
                        struct kube_companion *ret_companion)
{
    char text[NUMBER_TEXT_BYTES];
    number_text(claims, claim, text);
    TRY(kube_key_make(claims->arena, claim->is_port ? PORTS : ADDRESSES, SLICE_EMPTY,
                      slice_from_text(text), &claim->key));
    ret_companion->key = claim->key;
    ret_companion->expected = claim->expected;
    return make_value(claims, claim, slice_from_text(text), &ret_companion->value);
}

enum status kube_claims_companions(struct kube_claims *claims, struct slice namespace,
                                   struct slice name, struct kube_companions **ret_companions)
{
    size_t count = claims->count + claims->released_count;
    *ret_companions = NULL;
    claims->namespace = namespace;
    claims->name = name;
    if (!count)
        return ST_OK;
    struct kube_companions *companions = kube_companions_new(claims->arena, count);
    if (!companions)
        return ST_NOMEM;
    for (size_t i = 0; i < claims->count; i++)
        TRY(fill(claims, &claims->items[i], &companions->items[i]));
    for (size_t i = 0; i < claims->released_count; i++)
        companions->items[claims->count + i].key = claims->released[i];
    *ret_companions = companions;
    return ST_OK;
}

/* -- What is in use -- */

static void read_owner(struct kube_claims *claims, struct kube_claim *claim, struct slice value)
{
    struct json_node *object;
    struct error error;
    struct slice copy;
    claim->owner_namespace = claim->owner_name = SLICE_EMPTY;
    if (arena_dup(claims->arena, value, &copy) != ST_OK ||
        json_tree_read(claims->arena, copy, &object, &error) != ST_OK)
        return;
    const struct json_node *owner = json_node_path(object, "spec.parentRef");
    if (json_node_text(json_node_named(owner, "namespace"), claims->arena,
                       &claim->owner_namespace) != ST_OK ||
        json_node_text(json_node_named(owner, "name"), claims->arena, &claim->owner_name) != ST_OK)
        claim->owner_name = SLICE_EMPTY;
}

bool kube_claims_look(struct kube_claims *claims, const struct kube_write *write)
{
    bool any = false;
    for (size_t i = 0; i < claims->count; i++) {
        struct kube_claim *claim = &claims->items[i];
        struct kube_kv kv = kube_write_companion(write, i);
        claim->taken = kv.mod_revision != claim->expected ? kv.mod_revision : 0;
        if (!kv.mod_revision)
            claim->expected = 0;
        if (claim->taken)
            read_owner(claims, claim, kv.value);
        any |= claim->taken;
    }
    return any;
}

struct kube_claim *kube_claims_taken(struct kube_claims *claims)
{
    for (size_t i = 0; i < claims->count; i++)
        if (claims->items[i].taken)
            return &claims->items[i];
    return NULL;
}

bool kube_claims_has(const struct kube_claims *claims, const struct kube_claim *claim,
                     const struct json_node *service)
{
    char text[NUMBER_TEXT_BYTES];
    number_text(claims, claim, text);
    if (!claim->is_port)
        return needs_address(service) && has_address(service, slice_from_text(text));
    return needs_ports(service) &&
           has_port(service, (int64_t)(claims->ranges->port_first + claim->number));
}

void kube_claims_forget(struct kube_claim *claim)
{
    claim->expected = claim->taken;
    claim->taken = 0;
}

static bool refuse_taken(struct kube_claims *claims, const struct kube_claim *claim,
                         struct kube_field_errors *errors)
{
    char text[NUMBER_TEXT_BYTES];
    number_text(claims, claim, text);
    if (claim->is_port)
        return refuse_port(errors, claim->port_index,
                           (int64_t)(claims->ranges->port_first + claim->number),
                           "provided port is already allocated");
    refuse_address(errors, slice_from_text(text), "provided IP is already allocated");
    return false;
}

/* Not every number of a large range was tried, and the next request tries others. */
static bool refuse_full(const struct kube_claim *claim, bool is_full,
                        struct kube_field_errors *errors)
{
    const char *why = is_full ? "range is full"
                              : "the range is almost full, and 512 numbers that were tried are in "
                                "use: please try again, or name one that is free";
    char text[192];
    snprintf(text, sizeof(text), "failed to allocate a nodePort: %s", why);
    if (claim->is_port)
        return refuse_port(errors, claim->port_index, 0, text);
    kube_field_errors_add(errors, "FieldValueInvalid", SLICE_LITERAL("spec.clusterIPs"),
                          "Invalid value: null: failed to allocate a cluster IP: %s", why);
    return false;
}

/* The numbers that follow are tried, so that the last free one of a small range is found. */
bool kube_claims_next(struct kube_claims *claims, struct kube_claim *claim,
                      struct kube_field_errors *errors)
{
    uint64_t size = range_size(claims, claim);
    claim->taken = claim->expected = 0;
    if (claim->is_given)
        return refuse_taken(claims, claim, errors);
    if (++claim->tries >= size || claim->tries >= TRIES_MAX)
        return refuse_full(claim, claim->tries >= size, errors);
    claim->number = (claim->number + 1) % size;
    return show(claims, claim);
}
