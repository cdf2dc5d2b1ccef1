#include "kube/policy/reservations.h"

#include "codec/json/writer.h"

#include <stdio.h>
#include <string.h>

#define ADDRESSES "/registry/ipaddresses/"
#define PORTS "/registry/ranges/servicenodeports/"

enum { TRIES_MAX = 512, NUMBER_TEXT_BYTES = KUBE_ADDRESS_TEXT_BYTES };

bool kube_reservations_concern(const struct kube_kind *kind)
{
    return !kind->group[0] && strcmp(kind->plural, "services") == 0;
}

/* -- Services -- */

static bool is_type(const struct json_node *service, const char *type)
{
    const struct json_node *node = json_node_named(json_node_named(service, "spec"), "type");
    return node && node->text.len ? json_node_is_text(node, type) : strcmp(type, "ClusterIP") == 0;
}

static bool needs_address(const struct json_node *service)
{
    return service && !is_type(service, "ExternalName");
}

static bool needs_ports(const struct json_node *service)
{
    const struct json_node *wanted =
        json_node_named(json_node_named(service, "spec"), "allocateLoadBalancerNodePorts");
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
    /* clusterIP repeats the first of clusterIPs. A service that an older server has stored may have
     * it alone. */
    if (one && slice_equal(one->text, text))
        return true;
    for (const struct json_node *at = list ? list->first : NULL; at; at = at->next)
        if (slice_equal(at->text, text))
            return true;
    return false;
}

static bool has_port(const struct json_node *service, int64_t number)
{
    for (const struct json_node *at = json_node_items_at(service, "spec.ports"); at; at = at->next)
        if (node_port_of(at) == number)
            return true;
    return false;
}

/* -- Numbers -- */

static uint64_t range_size(const struct kube_reservations *reservations,
                           const struct kube_reservation *reservation)
{
    const struct kube_service_ranges *ranges = reservations->ranges;
    return reservation->is_port ? (uint64_t)(ranges->port_last - ranges->port_first) + 1
                                : ranges->addresses.size;
}

static void number_text(const struct kube_reservations *reservations,
                        const struct kube_reservation *reservation, char text[NUMBER_TEXT_BYTES])
{
    if (reservation->is_port) {
        snprintf(text, NUMBER_TEXT_BYTES, "%llu",
                 (unsigned long long)(reservations->ranges->port_first + reservation->number));
        return;
    }
    struct kube_address address =
        kube_range_at(&reservations->ranges->addresses, reservation->number);
    kube_address_format(&address, text);
}

static bool set_texts(struct kube_reservations *reservations, struct json_node *spec,
                      const char *one, const char *list, struct slice text)
{
    struct json_node *array = json_node_new(reservations->arena, JSON_TYPE_ARRAY);
    struct json_node *item = json_node_new_text(reservations->arena, text);
    struct json_node *copy = one ? json_node_new_text(reservations->arena, text) : NULL;
    return array && item && json_node_insert(array, NULL, item) == ST_OK &&
           json_node_set(reservations->arena, spec, slice_from_text(list), array) == ST_OK &&
           (!one || (copy && json_node_set(reservations->arena, spec, slice_from_text(one), copy) ==
                                 ST_OK));
}

static bool set_int(struct kube_reservations *reservations, struct json_node *object,
                    const char *key, int64_t value)
{
    return json_node_put(reservations->arena, object, key,
                         json_node_new_int(reservations->arena, value)) == ST_OK;
}

/* Writes the number of a reservation into the service. */
static bool show(struct kube_reservations *reservations, const struct kube_reservation *reservation)
{
    char text[NUMBER_TEXT_BYTES];
    struct json_node *spec = json_node_named(reservations->service, "spec");
    if (reservation->is_port)
        return set_int(
            reservations, json_node_item(json_node_named(spec, "ports"), reservation->port_index),
            "nodePort", (int64_t)(reservations->ranges->port_first + reservation->number));
    number_text(reservations, reservation, text);
    return set_texts(reservations, spec, "clusterIP", "clusterIPs", slice_from_text(text));
}

/* -- Making reservations -- */

static struct kube_reservation *add(struct kube_reservations *reservations,
                                    struct kube_reservation reservation,
                                    struct kube_field_errors *errors)
{
    if (reservations->count == KUBE_RESERVATIONS_MAX) {
        kube_field_errors_add(errors, "FieldValueTooMany", SLICE_LITERAL("spec.ports"),
                              "Too many: at most %d node ports can be allocated at a time",
                              KUBE_RESERVATIONS_MAX - 1);
        return NULL;
    }
    reservations->items[reservations->count] = reservation;
    return &reservations->items[reservations->count++];
}

/* In a service that has no other fault. */
static bool set_family(struct kube_reservations *reservations, struct json_node *spec)
{
    const char *family = reservations->ranges->addresses.base.is_v6 ? "IPv6" : "IPv4";
    const struct json_node *families = json_node_named(spec, "ipFamilies");
    struct json_node *policy =
        json_node_new_text(reservations->arena, SLICE_LITERAL("SingleStack"));
    if (!(families && families->count) &&
        !set_texts(reservations, spec, NULL, "ipFamilies", slice_from_text(family)))
        return false;
    if (json_node_has_text(json_node_named(spec, "ipFamilyPolicy")))
        return true;
    return policy && json_node_set(reservations->arena, spec, SLICE_LITERAL("ipFamilyPolicy"),
                                   policy) == ST_OK;
}

static void refuse_address(struct kube_field_errors *errors, struct slice text, const char *why)
{
    int len = (int)size_min(text.len, KUBE_ADDRESS_TEXT_BYTES);
    kube_field_errors_add(errors, "FieldValueInvalid", SLICE_LITERAL("spec.clusterIPs"),
                          "Invalid value: [\"%.*s\"]: failed to allocate IP %.*s: %s", len,
                          (const char *)text.ptr, len, (const char *)text.ptr, why);
}

static bool reserve_given(struct kube_reservations *reservations, struct slice text,
                          struct kube_field_errors *errors)
{
    struct kube_address address, base = reservations->ranges->addresses.base;
    if (!kube_address_parse(text, &address) ||
        !kube_range_has(&reservations->ranges->addresses, &address)) {
        refuse_address(errors, text, "the provided network does not match the current range");
        return false;
    }
    uint64_t number = 0;
    for (size_t i = 0; i < (base.is_v6 ? 16 : 4); i++)
        number = number << 8 | (uint64_t)(address.bytes[i] ^ base.bytes[i]);
    return add(reservations, (struct kube_reservation){.is_given = true, .number = number - 1},
               errors);
}

static bool reserve_any(struct kube_reservations *reservations, struct kube_reservation reservation,
                        struct kube_field_errors *errors)
{
    reservation.number = random_below(reservations->random, range_size(reservations, &reservation));
    const struct kube_reservation *added = add(reservations, reservation, errors);
    return added && show(reservations, added);
}

/* As in Kubernetes, an omitted address stays what it was. */
static bool reserve_address(struct kube_reservations *reservations, const struct json_node *old,
                            struct kube_field_errors *errors)
{
    struct json_node *spec = json_node_named(reservations->service, "spec");
    const struct json_node *had = needs_address(old) ? json_node_path(old, "spec.clusterIP") : NULL;
    const struct json_node *wanted = json_node_named(spec, "clusterIP");
    /* clusterIP is not given: clusterIPs counts, and without it the address that the service had.
     */
    if (!json_node_has_text(wanted)) {
        const struct json_node *list = json_node_named(spec, "clusterIPs");
        wanted = list && list->count ? list->first : json_node_has_text(had) ? had : NULL;
    }
    if (!json_node_has_text(wanted))
        return set_family(reservations, spec) &&
               reserve_any(reservations, (struct kube_reservation){0}, errors);
    struct slice text = wanted->text;
    if (!set_texts(reservations, spec, "clusterIP", "clusterIPs", text) ||
        !set_family(reservations, spec))
        return false;
    /* The service wants no address, or has this one already. */
    if (slice_is(text, "None") || (json_node_has_text(had) && slice_equal(had->text, text)))
        return true;
    return reserve_given(reservations, text, errors);
}

static bool same_port(const struct json_node *a, const struct json_node *b)
{
    const struct json_node *p = json_node_named(a, "protocol"), *q = json_node_named(b, "protocol");
    bool tcp_a = !json_node_has_text(p) || json_node_is_text(p, "TCP");
    bool tcp_b = !json_node_has_text(q) || json_node_is_text(q, "TCP");
    bool same = tcp_a || tcp_b ? tcp_a == tcp_b : json_node_equal(p, q);
    const struct json_node *m = json_node_named(a, "port"), *n = json_node_named(b, "port");
    return same && m && n && json_node_equal(m, n);
}

/* The node port that this port had before; 0: none. */
static int64_t port_before(const struct json_node *old, const struct json_node *port)
{
    for (const struct json_node *at = needs_ports(old) ? json_node_items_at(old, "spec.ports")
                                                       : NULL;
         at; at = at->next)
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

static bool reserve_given_port(struct kube_reservations *reservations, size_t index, int64_t number,
                               struct kube_field_errors *errors)
{
    const struct kube_service_ranges *ranges = reservations->ranges;
    char why[128];
    snprintf(why, sizeof(why),
             "provided port is not in the valid range. The range of valid ports is %u-%u",
             (unsigned)ranges->port_first, (unsigned)ranges->port_last);
    if (number < ranges->port_first || number > ranges->port_last)
        return refuse_port(errors, index, number, why);
    for (size_t i = 0; i < reservations->count; i++) /* the same port of another protocol */
        if (reservations->items[i].is_port &&
            reservations->items[i].number == (uint64_t)(number - ranges->port_first))
            return true;
    return add(reservations,
               (struct kube_reservation){.is_port = true,
                                         .is_given = true,
                                         .port_index = index,
                                         .number = (uint64_t)(number - ranges->port_first)},
               errors);
}

static bool reserve_port(struct kube_reservations *reservations, size_t index,
                         struct json_node *port, const struct json_node *old,
                         struct kube_field_errors *errors)
{
    int64_t number = node_port_of(port), before = port_before(old, port);
    /* An update without node ports keeps those that the service has. */
    if (!number && before)
        return set_int(reservations, port, "nodePort", before);
    /* The service has this port already, perhaps under another of its ports. */
    if (number && needs_ports(old) && has_port(old, number))
        return true;
    if (number)
        return reserve_given_port(reservations, index, number, errors);
    return reserve_any(reservations,
                       (struct kube_reservation){.is_port = true, .port_index = index}, errors);
}

static bool reserve_ports(struct kube_reservations *reservations, const struct json_node *old,
                          struct kube_field_errors *errors)
{
    struct json_node *ports = json_node_path(reservations->service, "spec.ports");
    size_t index = 0;
    if (!ports || ports->type != JSON_TYPE_ARRAY)
        return true;
    for (struct json_node *at = ports->count ? json_node_first(ports) : NULL; at;
         at = json_node_next(at))
        if (!reserve_port(reservations, index++, at, old, errors))
            return false;
    return true;
}

/* -- Giving up -- */

/* A key for which there is no room is found to have no owner when another service wants it. */
static void release(struct kube_reservations *reservations, const char *prefix, struct slice text)
{
    if (reservations->count + reservations->released_count < KUBE_COMPANIONS_MAX &&
        kube_key_make(reservations->arena, prefix, SLICE_EMPTY, text,
                      &reservations->released[reservations->released_count]) == ST_OK)
        reservations->released_count++;
}

/* What `old` has and `service` does not; NULL: it has nothing. */
static void release_rest(struct kube_reservations *reservations, const struct json_node *old,
                         const struct json_node *service)
{
    const struct json_node *address = json_node_path(old, "spec.clusterIP");
    if (needs_address(old) && json_node_has_text(address) && !json_node_is_text(address, "None") &&
        !(needs_address(service) && has_address(service, address->text)))
        release(reservations, ADDRESSES, address->text);
    for (const struct json_node *at = needs_ports(old) ? json_node_items_at(old, "spec.ports")
                                                       : NULL;
         at; at = at->next) {
        char text[24];
        int64_t number = node_port_of(at);
        snprintf(text, sizeof(text), "%lld", (long long)number);
        /* The service does not have the port any more. */
        if (number && !(service && needs_ports(service) && has_port(service, number)))
            release(reservations, PORTS, slice_from_text(text));
    }
}

void kube_reservations_release(struct kube_reservations *reservations, struct arena *arena,
                               const struct json_node *service)
{
    *reservations = (struct kube_reservations){.arena = arena};
    release_rest(reservations, service, NULL);
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
        const struct json_node *had = json_node_named(json_node_named(old, "spec"), member->name);
        if (now && had && member->needs(old) && !member->needs(service) &&
            json_node_equal(now, had))
            json_node_remove(spec, now);
    }
    drop_former_ports(service, old);
}

bool kube_reservations_make(struct kube_reservations *reservations,
                            const struct kube_service_ranges *ranges, const struct kube_meta *meta,
                            struct json_node *service, const struct json_node *old,
                            struct kube_field_errors *errors)
{
    struct json_node *spec = json_node_named(service, "spec");
    *reservations = (struct kube_reservations){.arena = meta->arena,
                                               .ranges = ranges,
                                               .random = meta->random,
                                               .service = service,
                                               .now_s = meta->now_s};
    if (!spec || spec->type != JSON_TYPE_OBJECT)
        return true; /* validation refuses it */
    if (old)
        drop_former(service, old);
    if (needs_address(service) && !reserve_address(reservations, old, errors))
        return false;
    if (needs_ports(service) && !reserve_ports(reservations, old, errors))
        return false;
    if (old)
        release_rest(reservations, old, service);
    return true;
}

/* -- Writing -- */

/* An IPAddress as clients read it. */
static bool complete_address(struct kube_reservations *reservations, struct slice name,
                             struct json_node *object)
{
    struct kube_status status = {0};
    struct kube_meta meta = {
        .arena = reservations->arena,
        .kind = kube_builtin_find(SLICE_LITERAL("networking.k8s.io"), SLICE_LITERAL("v1"),
                                  SLICE_LITERAL("ipaddresses")),
        .now_s = reservations->now_s,
        .random = reservations->random,
        .status = &status,
    };
    struct json_node *metadata = json_node_named(object, "metadata");
    return kube_meta_set_text(&meta, metadata, "name", name) && kube_meta_check(&meta, object) &&
           kube_meta_create(&meta, object) && kube_meta_order(&meta, object);
}

static enum status make_value(struct kube_reservations *reservations,
                              const struct kube_reservation *reservation, struct slice name,
                              struct slice *ret_value)
{
    AUTO(buf_fini) struct buf text = {0};
    struct json_writer w;
    struct json_node *object;
    struct error error;
    json_writer_init(&w, &text);
    json_begin_object(&w);
    if (!reservation->is_port) {
        json_member_object(&w, "metadata");
        json_member_object(&w, "labels");
        json_member_text(&w, "ipaddress.kubernetes.io/ip-family",
                         reservations->ranges->addresses.base.is_v6 ? "IPv6" : "IPv4");
        json_member_text(&w, "ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io");
        json_end_object(&w);
        json_end_object(&w);
    }
    json_member_object(&w, "spec");
    json_member_object(&w, "parentRef");
    json_member_text(&w, "resource", "services");
    json_member_string(&w, "namespace", reservations->namespace);
    json_member_string(&w, "name", reservations->name);
    json_end_object(&w);
    json_end_object(&w);
    json_end_object(&w);
    TRY(json_writer_finish(&w));
    TRY(arena_dup(reservations->arena, buf_slice(&text), ret_value));
    if (reservation->is_port)
        return ST_OK;
    TRY(json_tree_read(reservations->arena, *ret_value, &object, &error));
    if (!complete_address(reservations, name, object))
        return ST_NOMEM;
    buf_reset(&text, SIZE_MAX);
    TRY(json_tree_write(object, &text));
    return arena_dup(reservations->arena, buf_slice(&text), ret_value);
}

static enum status fill(struct kube_reservations *reservations,
                        struct kube_reservation *reservation, struct kube_companion *ret_companion)
{
    char text[NUMBER_TEXT_BYTES];
    number_text(reservations, reservation, text);
    TRY(kube_key_make(reservations->arena, reservation->is_port ? PORTS : ADDRESSES, SLICE_EMPTY,
                      slice_from_text(text), &reservation->key));
    ret_companion->key = reservation->key;
    ret_companion->expected = reservation->expected;
    return make_value(reservations, reservation, slice_from_text(text), &ret_companion->value);
}

enum status kube_reservations_companions(struct kube_reservations *reservations,
                                         struct slice namespace, struct slice name,
                                         struct kube_companions **ret_companions)
{
    size_t count = reservations->count + reservations->released_count;
    *ret_companions = NULL;
    reservations->namespace = namespace;
    reservations->name = name;
    if (!count)
        return ST_OK;
    struct kube_companions *companions = kube_companions_new(reservations->arena, count);
    if (!companions)
        return ST_NOMEM;
    for (size_t i = 0; i < reservations->count; i++)
        TRY(fill(reservations, &reservations->items[i], &companions->items[i]));
    for (size_t i = 0; i < reservations->released_count; i++)
        companions->items[reservations->count + i].key = reservations->released[i];
    *ret_companions = companions;
    return ST_OK;
}

/* -- What is in use -- */

static void read_owner(struct kube_reservations *reservations, struct kube_reservation *reservation,
                       struct slice value)
{
    struct json_node *object;
    struct error error;
    struct slice copy;
    reservation->owner_namespace = reservation->owner_name = SLICE_EMPTY;
    if (arena_dup(reservations->arena, value, &copy) != ST_OK ||
        json_tree_read(reservations->arena, copy, &object, &error) != ST_OK)
        return;
    const struct json_node *owner = json_node_path(object, "spec.parentRef");
    if (json_node_text(json_node_named(owner, "namespace"), reservations->arena,
                       &reservation->owner_namespace) != ST_OK ||
        json_node_text(json_node_named(owner, "name"), reservations->arena,
                       &reservation->owner_name) != ST_OK)
        reservation->owner_name = SLICE_EMPTY;
}

bool kube_reservations_look(struct kube_reservations *reservations, const struct kube_write *write)
{
    bool any = false;
    for (size_t i = 0; i < reservations->count; i++) {
        struct kube_reservation *reservation = &reservations->items[i];
        struct kube_kv kv = kube_write_companion(write, i);
        reservation->taken = kv.mod_revision != reservation->expected ? kv.mod_revision : 0;
        if (!kv.mod_revision)
            reservation->expected = 0;
        if (reservation->taken)
            read_owner(reservations, reservation, kv.value);
        any |= reservation->taken;
    }
    return any;
}

struct kube_reservation *kube_reservations_taken(struct kube_reservations *reservations)
{
    for (size_t i = 0; i < reservations->count; i++)
        if (reservations->items[i].taken)
            return &reservations->items[i];
    return NULL;
}

bool kube_reservations_has(const struct kube_reservations *reservations,
                           const struct kube_reservation *reservation,
                           const struct json_node *service)
{
    char text[NUMBER_TEXT_BYTES];
    number_text(reservations, reservation, text);
    if (!reservation->is_port)
        return needs_address(service) && has_address(service, slice_from_text(text));
    return needs_ports(service) &&
           has_port(service, (int64_t)(reservations->ranges->port_first + reservation->number));
}

void kube_reservations_forget(struct kube_reservation *reservation)
{
    reservation->expected = reservation->taken;
    reservation->taken = 0;
}

static bool refuse_taken(struct kube_reservations *reservations,
                         const struct kube_reservation *reservation,
                         struct kube_field_errors *errors)
{
    char text[NUMBER_TEXT_BYTES];
    number_text(reservations, reservation, text);
    if (reservation->is_port)
        return refuse_port(errors, reservation->port_index,
                           (int64_t)(reservations->ranges->port_first + reservation->number),
                           "provided port is already allocated");
    refuse_address(errors, slice_from_text(text), "provided IP is already allocated");
    return false;
}

/* Not every number of a large range was tried, and the next request tries others. */
static bool refuse_full(const struct kube_reservation *reservation, bool is_full,
                        struct kube_field_errors *errors)
{
    const char *why = is_full ? "range is full"
                              : "the range is almost full, and 512 numbers that were tried are in "
                                "use: please try again, or name one that is free";
    char text[192];
    snprintf(text, sizeof(text), "failed to allocate a nodePort: %s", why);
    if (reservation->is_port)
        return refuse_port(errors, reservation->port_index, 0, text);
    kube_field_errors_add(errors, "FieldValueInvalid", SLICE_LITERAL("spec.clusterIPs"),
                          "Invalid value: null: failed to allocate a cluster IP: %s", why);
    return false;
}

/* The numbers that follow are tried, so that the last free one of a small range is found. */
bool kube_reservations_next(struct kube_reservations *reservations,
                            struct kube_reservation *reservation, struct kube_field_errors *errors)
{
    uint64_t size = range_size(reservations, reservation);
    reservation->taken = reservation->expected = 0;
    if (reservation->is_given)
        return refuse_taken(reservations, reservation, errors);
    if (++reservation->tries >= size || reservation->tries >= TRIES_MAX)
        return refuse_full(reservation, reservation->tries >= size, errors);
    reservation->number = (reservation->number + 1) % size;
    return show(reservations, reservation);
}
