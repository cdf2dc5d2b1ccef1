#include "cmd/serve/config/admission_file.h"

#include "base/xalloc.h"
#include "cmd/serve/config/typed.h"
#include "cmd/serve/config/webhook_users.h"
#include "kube/policy/security/settings.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

enum { ARENA_BYTES = 64 << 20, PLUGINS_MAX = 100 };

/* -- Types -- */

static const struct typed_type entry_type = {
    .name = "AdmissionPluginConfiguration",
    .fields = {{"name", TYPED_TEXT, NULL},
               {"path", TYPED_TEXT, NULL},
               {"configuration", TYPED_ANY, NULL}},
};
static const struct typed_type file_type = {
    .name = "AdmissionConfiguration",
    .versions = {"apiserver.config.k8s.io/v1", "apiserver.k8s.io/v1alpha1"},
    .fields = {{"plugins", TYPED_OBJECTS, &entry_type}},
};

static const struct typed_type defaults_type = {
    .name = "PodSecurityDefaults",
    .fields = {{"enforce", TYPED_TEXT, NULL},
               {"enforce-version", TYPED_TEXT, NULL},
               {"audit", TYPED_TEXT, NULL},
               {"audit-version", TYPED_TEXT, NULL},
               {"warn", TYPED_TEXT, NULL},
               {"warn-version", TYPED_TEXT, NULL}},
};
static const struct typed_type exemptions_type = {
    .name = "PodSecurityExemptions",
    .fields = {{"usernames", TYPED_TEXTS, NULL},
               {"namespaces", TYPED_TEXTS, NULL},
               {"runtimeClasses", TYPED_TEXTS, NULL}},
};
static const struct typed_type pod_security_type = {
    .name = "PodSecurityConfiguration",
    .versions = {"pod-security.admission.config.k8s.io/v1",
                 "pod-security.admission.config.k8s.io/v1beta1",
                 "pod-security.admission.config.k8s.io/v1alpha1"},
    .fields = {{"defaults", TYPED_OBJECT, &defaults_type},
               {"exemptions", TYPED_OBJECT, &exemptions_type}},
};

static const struct typed_type webhook_type = {
    .name = "WebhookAdmissionConfiguration",
    .versions = {"apiserver.config.k8s.io/v1"},
    .fields = {{"kubeConfigFile", TYPED_TEXT, NULL}, {"staticManifestsDir", TYPED_TEXT, NULL}},
};

/* -- Plugins -- */

/* The file while it is read. */
struct admission_file {
    const char *path;
    struct arena *arena; /* holds what the set points to, */
    struct arena trees;  /* and this one everything else */
    struct kube_admission_set *set;
    struct kube_webhook_settings *webhooks;
    struct error *error;
};

/* "[a, b]", as Kubernetes joins several errors. */
static void join_errors(const struct kube_field_errors *errors, struct error *why)
{
    error_set(why, ST_INVALID, "%s", errors->count > 1 ? "[" : "");
    for (const struct kube_field_error *one = errors->first; one; one = one->next)
        error_append(why, "%.*s: %.*s%s", SLICE_ARGS(one->field), SLICE_ARGS(one->message),
                     one->next ? ", " : "");
    error_append(why, "%s", errors->count > 1 ? "]" : "");
}

static enum status read_pod_security(struct admission_file *f, const struct json_node *config,
                                     struct error *why)
{
    struct kube_field_errors errors = {.arena = &f->trees};
    size_t bytes = sizeof(struct pod_security_settings);
    struct pod_security_settings *settings = xalloc_check(arena_alloc(f->arena, bytes), bytes);
    pod_security_settings_read(config, f->arena, settings, &errors);
    if (arena_ran_out(f->arena) || errors.no_memory)
        return error_set(why, ST_LIMIT, "too many exemptions");
    if (errors.count) {
        join_errors(&errors, why);
        return ST_INVALID;
    }
    f->set->pod_security = settings;
    return ST_OK;
}

/* The path of the kubeconfig; empty: there is none. */
static enum status read_webhooks(struct admission_file *f, enum kube_webhook_use use,
                                 const struct json_node *config, struct error *why)
{
    char path[PATH_MAX];
    struct slice file;
    const struct json_node *node = json_node_named(config, "kubeConfigFile");
    if (json_node_has_text(json_node_named(config, "staticManifestsDir")))
        return error_set(
            why, ST_INVALID,
            "staticManifestsDir: webhooks are not read from files: create them through "
            "the API");
    if (!json_node_has_text(node))
        return ST_OK;
    if (json_node_text(node, &f->trees, &file) != ST_OK)
        return error_no_memory(why);
    if (file.ptr[0] != '/' || file.len >= sizeof(path) || memchr(file.ptr, 0, file.len))
        return error_set(why, ST_INVALID,
                         "kubeConfigFile: Invalid value: \"%.*s\": must be an absolute file path",
                         (int)size_min(file.len, 300), (const char *)file.ptr);
    snprintf(path, sizeof(path), "%.*s", SLICE_ARGS(file));
    return webhook_users_read(path, f->arena, &f->webhooks->users[use], why);
}

static enum status read_validating(struct admission_file *f, const struct json_node *config,
                                   struct error *why)
{
    return read_webhooks(f, KUBE_WEBHOOK_VALIDATES, config, why);
}

static enum status read_mutating(struct admission_file *f, const struct json_node *config,
                                 struct error *why)
{
    return read_webhooks(f, KUBE_WEBHOOK_MUTATES, config, why);
}

static const struct configured {
    const char *plugin;
    const struct typed_type *type;
    /* The configuration has the type. The error does not name the plugin. */
    enum status (*read)(struct admission_file *f, const struct json_node *config,
                        struct error *why);
} configured[] = {
    {"PodSecurity", &pod_security_type, read_pod_security},
    {"MutatingAdmissionWebhook", &webhook_type, read_mutating},
    {"ValidatingAdmissionWebhook", &webhook_type, read_validating},
};

static const struct configured *find_configured(struct slice plugin)
{
    for (size_t i = 0; i < COUNT_OF(configured); i++)
        if (slice_is(plugin, configured[i].plugin))
            return &configured[i];
    return NULL;
}

/* -- Entries -- */

/* The configuration itself, or that of its file; NULL: it is empty. */
static enum status read_config(struct admission_file *f, const struct configured *row,
                               const struct json_node *entry, const struct json_node **ret_config,
                               struct error *why)
{
    char path[PATH_MAX];
    struct slice name;
    const struct json_node *nested = json_node_named(entry, "configuration");
    if (json_node_is_set(nested)) {
        *ret_config = nested;
        return typed_check(row->type, nested, why);
    }
    if (json_node_text(json_node_named(entry, "path"), &f->trees, &name) != ST_OK)
        return error_no_memory(why);
    const char *slash = strrchr(f->path, '/');
    size_t directory = slash && name.ptr[0] != '/' ? (size_t)(slash - f->path) + 1 : 0;
    int len = snprintf(path, sizeof(path), "%.*s%.*s", (int)directory, f->path, SLICE_ARGS(name));
    if (len < 0 || (size_t)len >= sizeof(path) || memchr(name.ptr, 0, name.len))
        return error_set(why, ST_INVALID, "path is not the path of a file");
    struct json_node *tree;
    TRY(typed_read(row->type, path, &f->trees, &tree, why));
    *ret_config = tree;
    return ST_OK;
}

static enum status read_entry(struct admission_file *f, struct slice plugin,
                              const struct json_node *entry, struct error *why)
{
    const struct configured *row = find_configured(plugin);
    const struct kube_admission_absent *absent = kube_admission_absent(plugin);
    const struct json_node *config = NULL;
    if (!json_node_is_set(json_node_named(entry, "configuration")) &&
        !json_node_has_text(json_node_named(entry, "path")))
        return ST_OK;
    if (absent)
        return error_set(why, ST_INVALID, "Vigil does not have this plugin%s%s",
                         absent->why ? ": " : "", absent->why ? absent->why : "");
    if (!kube_admission_is_enabled(f->set, plugin))
        return ST_OK;
    if (!row)
        return error_set(why, ST_INVALID, "this plugin cannot be configured: remove it here");
    TRY(read_config(f, row, entry, &config, why));
    return config ? row->read(f, config, why) : ST_OK;
}

static bool is_repeated(const struct json_node *entry)
{
    const struct json_node *name = json_node_named(entry, "name");
    const struct json_node *before = entry->prev;
    while (before && name && !json_node_equal(json_node_named(before, "name"), name))
        before = before->prev;
    return before;
}

static enum status read_file(struct admission_file *f)
{
    struct json_node *root;
    struct slice plugin;
    struct error why;
    TRY(typed_read(&file_type, f->path, &f->trees, &root, f->error));
    if (!root)
        return error_set(f->error, ST_INVALID, "%.300s: Object 'Kind' is missing in ''", f->path);
    const struct json_node *plugins = json_node_named(root, "plugins");
    if (plugins && plugins->count > PLUGINS_MAX)
        return error_set(f->error, ST_LIMIT, "%.300s: more than %d plugins", f->path, PLUGINS_MAX);
    for (const struct json_node *entry = json_node_items(plugins); entry; entry = entry->next) {
        const struct json_node *name = json_node_named(entry, "name");
        if (!name || is_repeated(entry))
            continue;
        if (json_node_text(name, &f->trees, &plugin) != ST_OK)
            return error_no_memory(f->error);
        enum status status = read_entry(f, plugin, entry, &why);
        if (status != ST_OK)
            return error_set(f->error, status, "%.300s: %.*s: %.600s", f->path,
                             (int)size_min(plugin.len, 100), (const char *)plugin.ptr, why.text);
    }
    return ST_OK;
}

enum status admission_file_read(const char *path, struct arena *arena,
                                struct kube_admission_set *set,
                                struct kube_webhook_settings *webhooks, struct error *error)
{
    struct admission_file file = {
        .path = path, .arena = arena, .set = set, .webhooks = webhooks, .error = error};
    arena_init(&file.trees, NULL, 0, ARENA_BYTES);
    enum status status = read_file(&file);
    arena_fini(&file.trees);
    return status;
}
