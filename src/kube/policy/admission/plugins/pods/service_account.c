/*
 * ServiceAccount: a pod runs as a service account that exists, by default as "default", gets the
 * volume with the token of that account and its secrets for images, and may be limited to the
 * secrets that the account names. Without controllers no program creates the account "default".
 */
#include "kube/policy/admission/plugins/plugins.h"

#include "base/clock.h"
#include "kube/policy/admission/plugins/pods/secret_limit.h"
#include "kube/policy/admission/plugins/pods/token_volume.h"

#define MIRROR SLICE_LITERAL("kubernetes.io/config.mirror")
#define ENFORCE SLICE_LITERAL("kubernetes.io/enforce-mountable-secrets")
#define DEFAULT "default"

/* What is kept of a service account. */
struct account {
    enum { UNSET, NO, YES } automount;
    bool enforces;
    struct kube_texts secrets, pull_secrets;
};

/* -- Accounts -- */

static bool read_names(struct arena *arena, const struct json_node *list,
                       struct kube_texts *ret_names)
{
    struct kube_text_list names = {.arena = arena};
    *ret_names = (struct kube_texts){0};
    if (!list || list->type != JSON_TYPE_ARRAY)
        return true;
    for (const struct json_node *item = list->first; item; item = item->next) {
        struct slice name, copy;
        if (json_node_text(json_node_named(item, "name"), arena, &name) != ST_OK ||
            arena_dup(arena, name, &copy) != ST_OK)
            return false;
        kube_text_add(&names, copy);
    }
    *ret_names = kube_text_taken(&names);
    return true;
}

/* As Go's ParseBool. */
static bool is_true(const struct json_node *node)
{
    static const char *const texts[] = {"1", "t", "T", "true", "TRUE", "True"};
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (json_node_is_text(node, texts[i]))
            return true;
    return false;
}

static const void *read_account(struct arena *arena, const struct json_node *object)
{
    struct account *account = arena_calloc(arena, 1, sizeof(*account));
    const struct json_node *mount = json_node_named(object, "automountServiceAccountToken");
    if (!account || !read_names(arena, json_node_named(object, "secrets"), &account->secrets) ||
        !read_names(arena, json_node_named(object, "imagePullSecrets"), &account->pull_secrets))
        return NULL;
    if (mount && mount->type == JSON_TYPE_BOOL)
        account->automount = mount->truth ? YES : NO;
    account->enforces =
        is_true(json_node_member(json_node_path(object, "metadata.annotations"), ENFORCE));
    return account;
}

const struct kube_fact_row kube_accounts = {
    .kind = {.prefix = "/registry/serviceaccounts/", .namespaced = true, .read = read_account},
    .named_by = "spec.serviceAccountName",
    .unnamed = DEFAULT,
    .patience_ns = NS_PER_S,
};

/* -- Pods -- */

/* A mirror pod shows what a kubelet runs already. */
static bool check_mirror(const struct kube_admission_write *write, const struct json_node *spec)
{
    if (json_node_has_text(json_node_named(spec, "serviceAccountName")))
        return kube_admission_forbid(write, "a mirror pod may not reference service accounts");
    if (kube_pod_uses_secrets(spec))
        return kube_admission_forbid(write, "a mirror pod may not reference secrets");
    if (kube_pod_uses_token(spec))
        return kube_admission_forbid(
            write, "a mirror pod may not use ServiceAccountToken volume projections");
    return true;
}

/* The field that serviceAccountName replaced always has the same value. */
static bool set_account(struct kube_admission_write *write, struct json_node *spec,
                        struct slice *ret_name)
{
    const struct kube_meta meta = kube_admission_meta(write);
    if (json_node_text(json_node_named(spec, "serviceAccountName"), write->arena, ret_name) !=
        ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    if (ret_name->len)
        return true;
    *ret_name = SLICE_LITERAL(DEFAULT);
    return kube_meta_set_text(&meta, spec, "serviceAccountName", *ret_name) &&
           kube_meta_set_text(&meta, spec, "serviceAccount", *ret_name);
}

static bool find_account(const struct kube_admission_write *write, struct slice name,
                         const struct account **ret_account)
{
    const struct kube_lookup_object *object = write->facts->of[KUBE_FACT_ACCOUNTS].named;
    if (!object) {
        name.len = size_min(name.len, 256);
        return kube_admission_forbid(
            write, "error looking up service account %.*s/%.*s: serviceaccount \"%.*s\" not found",
            SLICE_ARGS(write->namespace), SLICE_ARGS(name), SLICE_ARGS(name));
    }
    *ret_account = object->data;
    return true;
}

static bool wants_token(const struct json_node *spec, const struct account *account)
{
    const struct json_node *own = json_node_named(spec, "automountServiceAccountToken");
    if (own && own->type == JSON_TYPE_BOOL)
        return own->truth;
    return account->automount != NO;
}

static bool add_pull_secrets(struct kube_admission_write *write, struct json_node *spec,
                             const struct account *account)
{
    const struct kube_meta meta = kube_admission_meta(write);
    const struct json_node *own = json_node_named(spec, "imagePullSecrets");
    struct json_node *list;
    if ((own && own->first) || !account->pull_secrets.count)
        return true;
    if (!kube_meta_array(&meta, spec, "imagePullSecrets", &list))
        return false;
    for (size_t i = 0; i < account->pull_secrets.count; i++) {
        struct json_node *item = json_node_new(write->arena, JSON_TYPE_OBJECT);
        if (!item || json_node_insert(list, NULL, item) != ST_OK)
            return kube_fail_engine(write->status, ST_NOMEM);
        if (!kube_meta_set_text(&meta, item, "name", account->pull_secrets.items[i]))
            return false;
    }
    return true;
}

/* A refusal of ephemeral containers is not a Status in Kubernetes, and becomes an unknown error. */
static bool check_secrets(const struct kube_admission_write *write, const struct json_node *spec,
                          const struct account *account, struct slice name)
{
    char why[KUBE_MESSAGE_BYTES];
    const struct kube_secret_limit limit = {
        .secrets = account->secrets, .pull_secrets = account->pull_secrets, .account = name};
    if (!account->enforces)
        return true;
    if (!write->old)
        return kube_secret_limit_pod(&limit, write->arena, spec, why) ||
               kube_admission_forbid(write, "%s", why);
    return kube_secret_limit_debug(&limit, write->arena, spec, why) ||
           kube_fail(write->status, KUBE_UNKNOWN, "%s", why);
}

static bool admit(struct kube_admission_write *write)
{
    struct json_node *spec = json_node_named(write->object, "spec");
    const struct account *account = NULL;
    struct slice name;
    if (write->old || !spec || spec->type != JSON_TYPE_OBJECT)
        return true;
    /* A mirror pod shows a static pod of a kubelet, which has no access to secrets of the API. */
    if (json_node_member(json_node_path(write->object, "metadata.annotations"), MIRROR))
        return check_mirror(write, spec);
    return set_account(write, spec, &name) && find_account(write, name, &account) &&
           (!wants_token(spec, account) || kube_token_volume_add(write, spec)) &&
           add_pull_secrets(write, spec, account) && check_secrets(write, spec, account, name);
}

static bool check(struct kube_admission_write *write)
{
    const struct json_node *spec = json_node_named(write->object, "spec");
    const struct account *account = NULL;
    struct slice name, pod;
    if (!write->old)
        return true;
    if (json_node_text(json_node_named(spec, "serviceAccountName"), write->arena, &name) != ST_OK)
        return kube_fail_engine(write->status, ST_NOMEM);
    pod = write->name;
    if (!name.len)
        return kube_admission_forbid(write, "no service account specified for pod %.*s/%.*s",
                                     SLICE_ARGS(write->namespace), SLICE_ARGS(pod));
    return find_account(write, name, &account) && check_secrets(write, spec, account, name);
}

const struct kube_admission_plugin kube_service_account = {
    .name = "ServiceAccount",
    .needs = 1u << KUBE_FACT_ACCOUNTS,
    .rules = {{"", "pods", "", KUBE_ON_CREATE},
              {"", "pods", "ephemeralcontainers", KUBE_ON_UPDATE}},
    .admit = admit,
    .check = check,
};
