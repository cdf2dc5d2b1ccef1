/* ConfigMap, Secret and Namespace. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#include "codec/base64.h"

enum { DATA_BYTES_MAX = 1024 * 1024 };

/* -- Content -- */

/* The number of decoded bytes. */
static size_t base64_bytes(struct slice text)
{
    size_t len = text.len;
    while (len && text.ptr[len - 1] == '=')
        len--;
    return len * 3 / 4;
}

static void check_frozen(struct check *c, const struct json_node *object,
                         const struct json_node *old, const char *const *members)
{
    static const char *const why = "field is immutable when `immutable` is set";
    if (!rule_truth(old, "immutable"))
        return;
    if (!rule_truth(object, "immutable"))
        bad_forbidden(c, AT(NULL, "immutable"), why);
    for (; *members; members++) {
        if (!rule_same_member(object, old, *members))
            bad_forbidden(c, AT(NULL, *members), why);
    }
}

static size_t check_keys(struct check *c, const char *name, const struct json_node *data,
                         const struct json_node *other, bool encoded)
{
    const struct at *at = AT(NULL, name);
    size_t bytes = 0;
    for (const struct json_node *entry = rule_first(data); entry; entry = entry->next) {
        rule_name(c, AT_KEY(at, entry->key), entry->key, config_key_valid);
        if (json_node_member(other, entry->key))
            bad_text(c, AT_KEY(at, entry->key), entry->key,
                     "duplicate of key present in binaryData");
        bytes += encoded ? base64_bytes(entry->text) : rule_text_of(c, entry).len;
    }
    return bytes;
}

void kube_validate_config_map(struct check *c, const struct json_node *object,
                              const struct json_node *old)
{
    static const char *const frozen[] = {"data", "binaryData", NULL};
    const struct json_node *binary = rule_member(object, "binaryData");
    check_frozen(c, object, old, frozen);
    size_t bytes = check_keys(c, "data", rule_member(object, "data"), binary, false);
    bytes += check_keys(c, "binaryData", binary, NULL, true);
    if (bytes > DATA_BYTES_MAX)
        bad_long(c, AT_KEY(NULL, SLICE_EMPTY), DATA_BYTES_MAX);
}

/* -- Secrets -- */

static const struct secret_type {
    const char *type;
    const char *keys[2]; /* that must be there */
    bool any;            /* one of them is enough */
    bool json;           /* the first is a JSON object */
    bool filled;         /* and not empty */
} secret_types[] = {
    {"kubernetes.io/dockercfg", {".dockercfg", NULL}, false, true, false},
    {"kubernetes.io/dockerconfigjson", {".dockerconfigjson", NULL}, false, true, false},
    {"kubernetes.io/basic-auth", {"username", "password"}, true, false, false},
    {"kubernetes.io/ssh-auth", {"ssh-privatekey", NULL}, false, false, true},
    {"kubernetes.io/tls", {"tls.crt", "tls.key"}, false, false, false},
};

static void check_is_json(struct check *c, const struct at *at, const struct json_node *entry)
{
    static const struct slice hidden = SLICE_LITERAL("<secret contents redacted>");
    struct slice text = rule_text_of(c, entry);
    uint8_t *bytes = arena_alloc(c->arena, text.len + 4);
    struct json_node *root;
    struct error error = {0};
    size_t len;
    if (!bytes || !base64_decode(text, bytes, &len))
        return;
    if (!len)
        bad_text(c, at, hidden, "unexpected end of JSON input");
    else if (json_tree_read(c->arena, slice_of(bytes, len), &root, &error) != ST_OK)
        bad_text(c, at, hidden, error.text);
    else if (root->type != JSON_TYPE_OBJECT && root->type != JSON_TYPE_NULL)
        bad_text(c, at, hidden,
                 "json: cannot unmarshal value into Go value of type map[string]interface {}");
}

static void check_secret_key(struct check *c, const struct secret_type *type, size_t i,
                             const struct json_node *data)
{
    struct slice key = slice_from_text(type->keys[i]);
    const struct json_node *entry = json_node_member(data, key);
    const struct at *at = AT_KEY(AT(NULL, "data"), key);
    if (!entry || (type->filled && !entry->text.len))
        bad_required(c, at, NULL);
    else if (type->json)
        check_is_json(c, at, entry);
}

static void check_secret_type(struct check *c, const struct secret_type *type,
                              const struct json_node *data)
{
    bool found = false;
    for (size_t i = 0; i < COUNT_OF(type->keys) && type->any; i++)
        found = found || json_node_named(data, type->keys[i]);
    for (size_t i = 0; i < COUNT_OF(type->keys) && type->keys[i] && !found; i++)
        check_secret_key(c, type, i, data);
}

static void check_secret(struct check *c, const struct json_node *object)
{
    static const struct slice account = SLICE_LITERAL("kubernetes.io/service-account.name");
    const struct json_node *data = rule_member(object, "data"),
                           *metadata = rule_member(object, "metadata");
    if (check_keys(c, "data", data, NULL, true) > DATA_BYTES_MAX)
        bad_long(c, AT(NULL, "data"), DATA_BYTES_MAX);
    for (size_t i = 0; i < COUNT_OF(secret_types); i++) {
        if (rule_text_is(object, "type", secret_types[i].type))
            check_secret_type(c, &secret_types[i], data);
    }
    if (rule_text_is(object, "type", "kubernetes.io/service-account-token") &&
        !rule_text_of(c, json_node_member(rule_member(metadata, "annotations"), account)).len)
        bad_required(c, AT_KEY(AT(AT(NULL, "metadata"), "annotations"), account), NULL);
}

void kube_validate_secret(struct check *c, const struct json_node *object,
                          const struct json_node *old)
{
    static const char *const frozen[] = {"data", NULL};
    if (old) {
        rule_fixed(c, NULL, object, old, "type");
        check_frozen(c, object, old, frozen);
    }
    check_secret(c, object);
}

/* -- Namespaces -- */

static void check_finalizer(struct check *c, const struct at *at, struct slice name)
{
    bool known = rule_one_of(name, "kubernetes,orphan,foregroundDeletion");
    rule_name(c, at, name, label_key_valid);
    if (!known && !(name.len && memchr(name.ptr, '/', name.len)))
        bad_text(c, at, name,
                 "name is neither a standard finalizer name nor is it fully qualified");
}

void kube_validate_namespace(struct check *c, const struct json_node *object,
                             const struct json_node *old)
{
    if (!old)
        rule_one(c, AT(NULL, "spec"), rule_member(object, "spec"), "finalizers", EACH_AT,
                 TEXT(check_finalizer));
}

/* Only a delete makes a namespace Terminating, so its phase agrees with deletionTimestamp. */
void kube_validate_namespace_status(struct check *c, const struct json_node *object,
                                    const struct json_node *old)
{
    bool deleting = rule_member(rule_member(old, "metadata"), "deletionTimestamp");
    const struct json_node *status = rule_member(object, "status");
    if (!rule_text_is(status, "phase", deleting ? "Terminating" : "Active"))
        bad_text(c, AT(AT(NULL, "status"), "Phase"), rule_text(c, status, "phase"),
                 deleting ? "may only be 'Terminating' if `deletionTimestamp` is not empty"
                          : "may only be 'Active' if `deletionTimestamp` is empty");
}
