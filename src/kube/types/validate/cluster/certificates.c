/* CertificateSigningRequest. */
#include "codec/base64.h"
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/rules.h"
#include "net/tls/request.h"

#include <stdio.h>

#define USAGES                                                                              \
    "any,cert sign,client auth,code signing,content commitment,crl sign,data encipherment," \
    "decipher only,digital signature,email protection,encipher only,ipsec end system,"      \
    "ipsec tunnel,ipsec user,key agreement,key encipherment,microsoft sgc,netscape sgc,"    \
    "ocsp signing,s/mime,server auth,signing,timestamping"

enum {
    LABEL_SHOWN_MAX = 400,
    SECONDS_MIN = 600,
    DOMAIN_BYTES_MAX = 253,
    SIGNER_BYTES_MAX = 253 + 253 + 63 + 2
};

static struct slice decoded(struct check *c, const struct json_node *node)
{
    struct slice text = rule_text_of(c, node);
    uint8_t *bytes = arena_alloc(c->arena, text.len / 4 * 3 + 3);
    size_t len = 0;
    if (!bytes)
        c->errors->no_memory = true;
    else if (base64_decode(text, bytes, &len))
        return slice_of(bytes, len);
    return SLICE_EMPTY;
}

/* -- Spec -- */

static void check_request(struct check *c, const struct at *at, const struct json_node *request)
{
    static const char *const faults[] = {
        [TLS_REQUEST_OTHER_PEM] = "PEM block type must be CERTIFICATE REQUEST",
        [TLS_REQUEST_DAMAGED] = "x509: malformed certificate request",
        [TLS_REQUEST_RSA_SIGNATURE] = "crypto/rsa: verification error",
        [TLS_REQUEST_EC_SIGNATURE] = "x509: ECDSA verification failure",
        [TLS_REQUEST_ED_SIGNATURE] = "x509: Ed25519 verification failure",
        [TLS_REQUEST_UNKNOWN_SIGNATURE] = "x509: cannot verify signature: algorithm unimplemented"};
    enum tls_request result = tls_request_check(decoded(c, request));
    if (result == TLS_REQUEST_NO_MEMORY)
        c->errors->no_memory = true;
    else if (result != TLS_REQUEST_FINE)
        bad_text(c, at, rule_text_of(c, request), faults[result]);
}

static const struct rule usage_rules[] = {
    {"usages", EACH_NEEDED, CHOICE(USAGES)},
    {"usages", EACH, UNIQUE},
};

static size_t labels_in(struct slice domain)
{
    size_t count = 1;
    for (size_t i = 0; i < domain.len; i++)
        count += domain.ptr[i] == '.';
    return count;
}

/* Labels that are separated by dots; the first invalid one is reported. */
static void check_labels_of(struct check *c, const struct at *at, struct slice text, name_rule rule)
{
    struct slice rest = text;
    char why[NAME_ERROR_BYTES], before[NAME_ERROR_BYTES];
    size_t count = labels_in(text);
    while (count-- > 0) {
        struct slice label = slice_cut(&rest, '.');
        if (rule(label, why))
            continue;
        snprintf(before, sizeof(before),
                 "validating label \"%.*s\": ", (int)size_min(label.len, LABEL_SHOWN_MAX),
                 (const char *)label.ptr);
        bad_texts(c, at, text, before, why);
        return;
    }
}

static void check_signer(struct check *c, const struct at *at, struct slice name)
{
    struct slice path = name, domain = slice_cut(&path, '/');
    bool one = name.len && memchr(name.ptr, '/', name.len) &&
               !(path.len && memchr(path.ptr, '/', path.len));
    if (!name.len) {
        bad_required(c, at, NULL);
        return;
    }
    if (slice_is(name, "kubernetes.io/legacy-unknown")) {
        bad_text(c, at, name, "the legacy signerName is not allowed via this API version");
        return;
    }
    if (!one) {
        bad_text(c, at, name,
                 "must be a fully qualified domain and path of the form 'example.com/signer-name'");
        return;
    }
    if (domain.len > DOMAIN_BYTES_MAX)
        bad_long(c, at, DOMAIN_BYTES_MAX);
    check_labels_of(c, at, domain, dns_label_valid);
    if (labels_in(domain) < 2)
        bad_text(c, at, domain, "should be a domain with at least two segments separated by dots");
    check_labels_of(c, at, path, subdomain_valid);
    if (name.len > SIGNER_BYTES_MAX)
        bad_long(c, at, SIGNER_BYTES_MAX);
}

static void check_csr_spec(struct check *c, const struct json_node *spec)
{
    const struct at *at = AT(NULL, "spec");
    int64_t seconds = rule_int(spec, "expirationSeconds", SECONDS_MIN);
    check_request(c, AT(at, "request"), rule_member(spec, "request"));
    rule_rows(c, at, spec, usage_rules);
    check_signer(c, AT(at, "signerName"), rule_text(c, spec, "signerName"));
    if (seconds < SECONDS_MIN)
        bad_int(c, AT(at, "expirationSeconds"), seconds,
                "may not specify a duration less than 600 seconds (10 minutes)");
}

void kube_validate_csr(struct check *c, const struct json_node *object, const struct json_node *old)
{
    /* Later it is not changed any more. */
    if (!old)
        check_csr_spec(c, rule_member(object, "spec"));
}

/* -- Status -- */

static size_t count_type(const struct json_node *object, const char *type)
{
    size_t count = 0;
    for (const struct json_node *item = json_node_items_at(object, "status.conditions"); item;
         item = item->next)
        count += rule_text_is(item, "type", type);
    return count;
}

/* What the stored conditions have that is not allowed stays allowed. */
struct kept {
    bool both, repeats, untyped;
};

static struct kept kept_of(struct check *c, const struct json_node *old)
{
    struct kept kept = {.both = count_type(old, "Approved") && count_type(old, "Denied")};
    struct seen seen = {0};
    for (const struct json_node *item = json_node_items_at(old, "status.conditions"); item;
         item = item->next) {
        struct slice type = rule_text(c, item, "type");
        kept.untyped = kept.untyped || !type.len;
        kept.repeats = !seen_add(c, &seen, type) || kept.repeats;
    }
    return kept;
}

static void check_condition(struct check *c, const struct at *at, const struct json_node *item,
                            const struct kept *kept)
{
    struct slice type = rule_text(c, item, "type"), status = rule_text(c, item, "status");
    if (!type.len && !kept->untyped)
        bad_required(c, AT(at, "type"), NULL);
    if (!status.len)
        bad_required(c, AT(at, "status"), NULL);
    else
        rule_choice(c, AT(at, "status"), status,
                    rule_one_of(type, "Approved,Denied,Failed") ? "True" : "False,True,Unknown");
}

static void check_conditions(struct check *c, const struct at *at, const struct json_node *object,
                             const struct kept *kept)
{
    bool approved = false, denied = false;
    struct seen seen = {0};
    size_t i = 0;
    for (const struct json_node *item = json_node_items_at(object, "status.conditions"); item;
         item = item->next, i++) {
        struct slice type = rule_text(c, item, "type");
        bool is_approved = slice_is(type, "Approved");
        bool is_denied = slice_is(type, "Denied");
        check_condition(c, AT_ITEM(at, i), item, kept);
        if (!kept->both && ((is_approved && denied) || (is_denied && approved)))
            bad_text(c, at, type, "Approved and Denied conditions are mutually exclusive");
        approved = approved || is_approved;
        denied = denied || is_denied;
        if (!seen_add(c, &seen, type) && !kept->repeats)
            bad_repeat(c, AT(AT_ITEM(at, i), "type"), type);
    }
}

static void check_certificate(struct check *c, const struct at *at, const struct json_node *node)
{
    static const char *const faults[] = {
        [TLS_CHAIN_EMPTY] = "must contain at least one CERTIFICATE PEM block",
        [TLS_CHAIN_HAS_HEADERS] = "no PEM block headers are permitted",
        [TLS_CHAIN_DAMAGED] = "x509: malformed certificate"};
    char type[TLS_PEM_TYPE_BYTES], why[TLS_PEM_TYPE_BYTES + 64];
    if (!rule_text_of(c, node).len)
        return;
    enum tls_chain result = tls_chain_check(decoded(c, node), type);
    snprintf(why, sizeof(why), "only CERTIFICATE PEM blocks are allowed, found \"%s\"", type);
    if (result == TLS_CHAIN_NO_MEMORY)
        c->errors->no_memory = true;
    else if (result != TLS_CHAIN_FINE)
        bad_text(c, at, SLICE_LITERAL("<certificate data>"),
                 result == TLS_CHAIN_OTHER_PEM ? why : faults[result]);
}

/* A condition of these types is never removed; only /approval adds the first two. */
static void check_kept_conditions(struct check *c, const struct at *at,
                                  const struct json_node *object, const struct json_node *old)
{
    static const char *const types[] = {"Approved", "Denied", "Failed"};
    char why[64];
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        snprintf(why, sizeof(why), "updates may not remove a condition of type \"%s\"", types[i]);
        if (count_type(object, types[i]) < count_type(old, types[i]))
            bad_forbidden(c, at, why);
    }
    for (size_t i = 0; i < 2 && !c->approves; i++) {
        snprintf(why, sizeof(why), "updates may not add a condition of type \"%s\"", types[i]);
        if (count_type(object, types[i]) > count_type(old, types[i]))
            bad_forbidden(c, at, why);
    }
}

void kube_validate_csr_status(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    const struct json_node *is = json_node_path(object, "status.certificate");
    const struct json_node *was = json_node_path(old, "status.certificate");
    const struct at *at = AT(NULL, "status");
    const struct kept kept = kept_of(c, old);
    check_conditions(c, AT(at, "conditions"), object, &kept);
    if (!rule_same_node(is, was))
        check_certificate(c, AT(at, "certificate"), is);
    if (!old)
        return;
    check_kept_conditions(c, AT(at, "conditions"), object, old);
    if (rule_text_of(c, was).len && !rule_same_node(is, was))
        bad_forbidden(c, AT(at, "certificate"),
                      "updates may not modify existing certificate content");
}
