#include "kube/request/accept.h"

#include <string.h>

static struct slice trim(struct slice text)
{
    while (text.len && text.ptr[0] == ' ')
        text = slice_sub(text, 1, text.len - 1);
    while (text.len && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

#define APPLICATION "application/"

static const char *const types[] = {
    [KUBE_JSON] = APPLICATION "json",
    [KUBE_YAML] = APPLICATION "yaml",
    [KUBE_PROTOBUF] = APPLICATION "vnd.kubernetes.protobuf",
};

struct slice kube_format_type(enum kube_format format)
{
    return slice_from_text(types[format]);
}

/* -- Clauses -- */

struct clause {
    struct slice type, subtype;
    int weight; /* q, in thousandths */
    struct slice as, group, version;
    bool converts; /* as, g or v was given */
    struct slice stream, server_version;
    bool pretty;
};

/* "0.75"; an invalid weight counts as 0, as in Kubernetes. */
static int parse_weight(struct slice text)
{
    int weight = 0, unit = 1000, sign = 1;
    bool fraction = false;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = text.ptr[i] - (unsigned)'0';
        if (text.ptr[i] == '-' && i == 0) {
            sign = -1;
        } else if (text.ptr[i] == '.' && !fraction) {
            fraction = true;
        } else if (digit > 9) {
            return 0;
        } else if (fraction) {
            unit /= 10;
            weight += unit * (int)digit;
        } else {
            weight = weight < 1000000 ? weight * 10 + 1000 * (int)digit : weight;
        }
    }
    return sign * weight;
}

static void take_parameter(struct clause *clause, struct slice name, struct slice value)
{
    if (slice_is(name, "q")) {
        clause->weight = parse_weight(value);
        return;
    }
    value = trim(value);
    if (slice_is(name, "as"))
        clause->as = value;
    else if (slice_is(name, "g"))
        clause->group = value;
    else if (slice_is(name, "v"))
        clause->version = value;
    else if (slice_is(name, "stream"))
        clause->stream = value;
    else if (slice_is(name, "sv"))
        clause->server_version = value;
    else if (slice_is(name, "pretty"))
        clause->pretty = slice_is(value, "1");
    clause->converts |= slice_is(name, "as") || slice_is(name, "g") || slice_is(name, "v");
}

/* False: not a valid clause. */
static bool clause_parse(struct slice rest, struct clause *clause)
{
    struct slice both = slice_cut(&rest, ';');
    *clause = (struct clause){.weight = 1000};
    clause->type = trim(slice_cut(&both, '/'));
    clause->subtype = trim(both);
    if (!both.len) {
        clause->subtype = SLICE_LITERAL("*");
        if (!slice_is(clause->type, "*"))
            return false;
    }
    if (memchr(both.ptr, '/', both.len))
        return false;
    while (rest.len) {
        struct slice value = slice_cut(&rest, ';');
        struct slice name = trim(slice_cut(&value, '='));
        if (value.len && !memchr(value.ptr, '=', value.len))
            take_parameter(clause, name, value);
    }
    return true;
}

/* Whether a clause precedes another, as in Go's goautoneg, whose rule is not a strict order. */
static bool goes_before(const struct clause *a, const struct clause *b)
{
    return a->weight > b->weight || (!slice_is(a->type, "*") && slice_is(b->type, "*")) ||
           (!slice_is(a->subtype, "*") && slice_is(b->subtype, "*"));
}

static size_t clauses_parse(struct slice accept, struct clause clauses[KUBE_ACCEPT_CLAUSES_MAX])
{
    size_t count = 0;
    while (accept.len && count < KUBE_ACCEPT_CLAUSES_MAX) {
        struct clause clause;
        if (!clause_parse(trim(slice_cut(&accept, ',')), &clause))
            continue;
        /* The rule is inconsistent for some clauses. Inserting them one by one gives the same order
         * as Go, which sorts short lists in this way. */
        size_t at = count++;
        for (; at && goes_before(&clause, &clauses[at - 1]); at--)
            clauses[at] = clauses[at - 1];
        clauses[at] = clause;
    }
    return count;
}

/* -- Offers -- */

/* The shape that the clause asks for. False: it is not offered in that format. */
static bool take_shape(const struct clause *clause, const struct kube_offer *offer,
                       struct kube_accept *accept)
{
    unsigned bit = 1u << accept->format;
    if (!clause->converts)
        return offer->whole & bit;
    if (offer->discovery_v2 && slice_is(clause->group, "apidiscovery.k8s.io")) {
        accept->discovery_v2 =
            slice_is(clause->as, "APIGroupDiscoveryList") && slice_is(clause->version, "v2");
        return accept->discovery_v2 && offer->whole & bit;
    }
    accept->v1beta1 = slice_is(clause->version, "v1beta1");
    if (!slice_is(clause->group, "meta.k8s.io") ||
        !(slice_is(clause->version, "v1") || accept->v1beta1))
        return false;
    if (slice_is(clause->as, "Table")) {
        accept->shape = KUBE_TABLE;
        return offer->table & bit;
    }
    accept->shape = KUBE_PARTIAL;
    accept->list = slice_is(clause->as, "PartialObjectMetadataList");
    return offer->partial & bit && (accept->list || slice_is(clause->as, "PartialObjectMetadata"));
}

static bool clause_take(const struct clause *clause, enum kube_format format,
                        const struct kube_offer *offer, struct kube_accept *ret_accept)
{
    struct kube_accept accept = {.format = format, .pretty = clause->pretty};
    bool any = slice_is(clause->type, "*") && slice_is(clause->subtype, "*");
    bool named = slice_is(clause->type, "application") &&
                 (slice_is(clause->subtype, "*") ||
                  slice_is(clause->subtype, types[format] + sizeof(APPLICATION) - 1));
    if (!any && !named)
        return false;
    if (clause->stream.len && (format == KUBE_YAML || !slice_is(clause->stream, "watch")))
        return false;
    if (clause->server_version.len && !(offer->table && slice_is(clause->server_version, "v1")))
        return false; /* only for resources */
    if (!take_shape(clause, offer, &accept))
        return false;
    *ret_accept = accept;
    return true;
}

bool kube_accept_parse(struct slice accept, const struct kube_offer *offer,
                       struct kube_accept *ret_accept)
{
    struct clause clauses[KUBE_ACCEPT_CLAUSES_MAX];
    *ret_accept = (struct kube_accept){0};
    /* Without the field the answer is JSON. */
    if (!accept.len)
        return true;
    size_t count = clauses_parse(accept, clauses);
    for (size_t i = 0; i < count; i++) {
        for (enum kube_format format = KUBE_JSON; format <= KUBE_PROTOBUF; format++) {
            if (clause_take(&clauses[i], format, offer, ret_accept))
                return true;
        }
    }
    return false;
}

bool kube_accept_routes(struct slice accept)
{
    bool routes = !accept.len;
    while (accept.len && !routes) {
        struct slice clause = slice_cut(&accept, ',');
        struct slice type = trim(slice_cut(&clause, ';'));
        routes = slice_is(type, "*/*");
        for (size_t i = 0; i < COUNT_OF(types) && !routes; i++)
            routes = slice_is(type, types[i]);
    }
    return routes;
}
