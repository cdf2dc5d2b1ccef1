#include "kube/policy/security/contexts.h"

#include "kube/types/go_text.h"

/* -- Who is exempt -- */

static bool has_user_namespace(const struct pod_checked *c)
{
    const struct json_node *uses = json_node_named(c->spec, "hostUsers");
    return c->minor >= POD_USER_NAMESPACES_MINOR && uses && uses->type == JSON_TYPE_BOOL &&
           !uses->truth;
}

static bool runs_windows(const struct pod_checked *c)
{
    return c->minor >= POD_WINDOWS_MINOR && json_node_text_is(c->spec, "os.name", "windows");
}

/* -- Members of the security contexts of the pod and of its containers -- */

struct setters {
    struct pod_words containers; /* whose member is bad */
    struct pod_words values;     /* the values of the bad ones */
    bool pod;                    /* that of the pod is bad */
    bool pod_sets;               /* the pod has the member */
    bool user, role;             /* those of seLinuxOptions */
};

/* Whether a member that is set is bad; may add its value. */
typedef bool is_bad_fn(struct pod_checked *c, const struct json_node *member,
                       struct setters *setters);

static struct setters find_setters(struct pod_checked *c, const char *path, is_bad_fn *is_bad)
{
    struct setters setters = {0};
    const struct json_node *context = json_node_named(c->spec, "securityContext");
    const struct json_node *member = json_node_path(context, path);
    setters.pod_sets = json_node_is_set(member);
    setters.pod = setters.pod_sets && is_bad(c, member, &setters);
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk)) {
        context = json_node_named(walk.now, "securityContext");
        member = json_node_path(context, path);
        if (json_node_is_set(member) && is_bad(c, member, &setters))
            pod_words_add(c, &setters.containers, pod_name_of(c, walk.now));
    }
    pod_words_sort(&setters.values);
    return setters;
}

static bool some_set(const struct setters *setters)
{
    return setters->pod || setters->containers.count;
}

/* `pod and containers "a", "b"` */
static void put_setters(struct pod_checked *c, const struct setters *setters)
{
    if (setters->pod)
        pod_put_text(c, "pod");
    if (setters->pod && setters->containers.count)
        pod_put_text(c, " and ");
    if (setters->containers.count)
        pod_put_containers(c, &setters->containers);
}

static bool fail_setters(struct pod_checked *c, const struct setters *setters, const char *reason,
                         const char *must)
{
    put_setters(c, setters);
    pod_put_text(c, must);
    pod_put_quoted(c, &setters->values);
    return pod_check_fail(c, reason);
}

/* Containers that leave the member to the pod. */
static struct pod_words find_unset(struct pod_checked *c, const char *path)
{
    struct pod_words unset = {0};
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk)) {
        const struct json_node *context = json_node_named(walk.now, "securityContext");
        if (!json_node_is_set(json_node_path(context, path)))
            pod_words_add(c, &unset, pod_name_of(c, walk.now));
    }
    return unset;
}

static bool fail_unset(struct pod_checked *c, const struct pod_words *unset, const char *reason,
                       const char *must)
{
    pod_put_text(c, "pod or ");
    pod_put_containers(c, unset);
    pod_put_text(c, must);
    return pod_check_fail(c, reason);
}

static bool is_true(struct pod_checked *c, const struct json_node *member, struct setters *setters)
{
    (void)c;
    (void)setters;
    return json_node_is_true(member);
}

static bool is_false(struct pod_checked *c, const struct json_node *member, struct setters *setters)
{
    (void)c;
    (void)setters;
    return member->type == JSON_TYPE_BOOL && !member->truth;
}

static bool is_zero(struct pod_checked *c, const struct json_node *member, struct setters *setters)
{
    (void)c;
    (void)setters;
    return member->type == JSON_TYPE_NUMBER && slice_is(member->text, "0");
}

/* Profiles that a runtime or the administrator of the node has chosen. */
static bool is_other_profile(struct pod_checked *c, const struct json_node *profile,
                             struct setters *setters)
{
    struct slice type = pod_text_of(c, json_node_named(profile, "type"));
    if (slice_is(type, "RuntimeDefault") || slice_is(type, "Localhost"))
        return false;
    pod_words_add(c, &setters->values, type);
    return true;
}

bool pod_passes_privileged(struct pod_checked *c)
{
    struct setters bad = find_setters(c, "privileged", is_true);
    return !some_set(&bad) ||
           fail_setters(c, &bad, "privileged", " must not set securityContext.privileged=true");
}

bool pod_passes_windows(struct pod_checked *c)
{
    struct setters bad = find_setters(c, "windowsOptions.hostProcess", is_true);
    return !some_set(&bad) ||
           fail_setters(c, &bad, "hostProcess",
                        " must not set securityContext.windowsOptions.hostProcess=true");
}

static bool is_other_mount(struct pod_checked *c, const struct json_node *member,
                           struct setters *setters)
{
    if (json_node_is_text(member, "Default"))
        return false;
    pod_words_add(c, &setters->values, pod_text_of(c, member));
    return true;
}

bool pod_passes_proc_mount_always(struct pod_checked *c)
{
    struct setters bad = find_setters(c, "procMount", is_other_mount);
    return !some_set(&bad) ||
           fail_setters(c, &bad, "procMount", " must not set securityContext.procMount to ");
}

bool pod_passes_proc_mount(struct pod_checked *c)
{
    return has_user_namespace(c) || pod_passes_proc_mount_always(c);
}

bool pod_passes_user(struct pod_checked *c)
{
    if (has_user_namespace(c))
        return true;
    struct setters bad = find_setters(c, "runAsUser", is_zero);
    return !some_set(&bad) || fail_setters(c, &bad, "runAsUser=0", " must not set runAsUser=0");
}

bool pod_passes_non_root(struct pod_checked *c)
{
    static const char reason[] = "runAsNonRoot != true";
    if (has_user_namespace(c))
        return true;
    struct setters bad = find_setters(c, "runAsNonRoot", is_false);
    if (some_set(&bad))
        return fail_setters(c, &bad, reason, " must not set securityContext.runAsNonRoot=false");
    if (bad.pod_sets)
        return true;
    struct pod_words unset = find_unset(c, "runAsNonRoot");
    return !unset.count ||
           fail_unset(c, &unset, reason, " must set securityContext.runAsNonRoot=true");
}

bool pod_passes_escalation(struct pod_checked *c)
{
    struct pod_words bad = {0};
    if (runs_windows(c))
        return true;
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk)) {
        const struct json_node *may =
            json_node_path(walk.now, "securityContext.allowPrivilegeEscalation");
        if (!json_node_is_set(may) || json_node_is_true(may))
            pod_words_add(c, &bad, pod_name_of(c, walk.now));
    }
    if (!bad.count)
        return true;
    pod_put_containers(c, &bad);
    pod_put_text(c, " must set securityContext.allowPrivilegeEscalation=false");
    return pod_check_fail(c, "allowPrivilegeEscalation != false");
}

/* -- SELinux -- */

static bool is_other_label(struct pod_checked *c, const struct json_node *options,
                           struct setters *setters)
{
    struct slice type = pod_text_of(c, json_node_named(options, "type"));
    bool engine = c->minor >= POD_ENGINE_TYPE_MINOR && slice_is(type, "container_engine_t");
    bool type_is_fine = !type.len || engine || slice_is(type, "container_t") ||
                        slice_is(type, "container_init_t") || slice_is(type, "container_kvm_t");
    bool user = json_node_has_text(json_node_named(options, "user"));
    bool role = json_node_has_text(json_node_named(options, "role"));
    if (!type_is_fine)
        pod_words_add(c, &setters->values, type);
    setters->user = setters->user || user;
    setters->role = setters->role || role;
    return !type_is_fine || user || role;
}

bool pod_passes_se_linux(struct pod_checked *c)
{
    struct setters bad = find_setters(c, "seLinuxOptions", is_other_label);
    const char *between = "";
    if (!some_set(&bad))
        return true;
    put_setters(c, &bad);
    pod_put_text(c, " set forbidden securityContext.seLinuxOptions: ");
    if (bad.values.count) {
        pod_put_text(c, pod_plural(bad.values.count, "type ", "types "));
        pod_put_quoted(c, &bad.values);
        between = "; ";
    }
    if (bad.user) {
        pod_put_text(c, between);
        pod_put_text(c, "user may not be set");
        between = "; ";
    }
    if (bad.role) {
        pod_put_text(c, between);
        pod_put_text(c, "role may not be set");
    }
    return pod_check_fail(c, "seLinuxOptions");
}

/* -- AppArmor and seccomp, which began as annotations -- */

static const struct slice local_profile = SLICE_LITERAL("localhost/");

/* `key="value"` */
static void add_annotation(struct pod_checked *c, struct pod_words *words,
                           const struct json_node *annotation)
{
    struct buf text = {0};
    struct slice copy = SLICE_EMPTY;
    if (buf_append(&text, annotation->key) != ST_OK || buf_append_text(&text, "=") != ST_OK ||
        go_quote(pod_text_of(c, annotation), &text) != ST_OK ||
        arena_dup(c->arena, buf_slice(&text), &copy) != ST_OK)
        c->no_memory = true;
    else
        pod_words_add(c, words, copy);
    buf_fini(&text);
}

static struct pod_words find_app_armor_annotations(struct pod_checked *c)
{
    static const struct slice prefix =
        SLICE_LITERAL("container.apparmor.security.beta.kubernetes.io/");
    const struct json_node *all = json_node_named(c->metadata, "annotations");
    struct pod_words bad = {0};
    for (const struct json_node *one = all ? all->first : NULL; one; one = one->next) {
        struct slice value = slice_has_prefix(one->key, prefix) ? pod_text_of(c, one) : SLICE_EMPTY;
        if (value.len && !slice_is(value, "runtime/default") &&
            !slice_has_prefix(value, local_profile))
            add_annotation(c, &bad, one);
    }
    pod_words_sort(&bad);
    return bad;
}

bool pod_passes_app_armor(struct pod_checked *c)
{
    struct setters bad = find_setters(c, "appArmorProfile", is_other_profile);
    struct pod_words annotations = find_app_armor_annotations(c);
    if (!some_set(&bad) && !annotations.count)
        return true;
    put_setters(c, &bad);
    if (annotations.count) {
        pod_put_text(c, some_set(&bad) ? " and " : "");
        pod_put_text(c, pod_plural(annotations.count, "annotation", "annotations"));
    }
    for (size_t i = 0; i < annotations.count; i++)
        pod_words_add(c, &bad.values, annotations.items[i]);
    pod_put_text(c, " must not set AppArmor profile type to ");
    pod_put_quoted(c, &bad.values);
    return pod_check_fail(c, pod_plural(bad.values.count, "forbidden AppArmor profile",
                                        "forbidden AppArmor profiles"));
}

static void look_at_seccomp_annotation(struct pod_checked *c, struct slice key,
                                       struct pod_words *bad)
{
    const struct json_node *annotations = json_node_named(c->metadata, "annotations");
    const struct json_node *one = json_node_member(annotations, key);
    struct slice value = pod_text_of(c, one);
    if (one && !slice_is(value, "runtime/default") && !slice_is(value, "docker/default") &&
        !slice_has_prefix(value, local_profile))
        add_annotation(c, bad, one);
}

static bool passes_seccomp_annotations(struct pod_checked *c)
{
    static const char prefix[] = "container.seccomp.security.alpha.kubernetes.io/";
    struct pod_words bad = {0};
    struct buf key = {0};
    look_at_seccomp_annotation(c, SLICE_LITERAL("seccomp.security.alpha.kubernetes.io/pod"), &bad);
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk)) {
        key.len = 0;
        if (buf_append_text(&key, prefix) != ST_OK ||
            buf_append(&key, pod_name_of(c, walk.now)) != ST_OK)
            c->no_memory = true;
        look_at_seccomp_annotation(c, buf_slice(&key), &bad);
    }
    buf_fini(&key);
    if (!bad.count)
        return true;
    pod_words_sort(&bad);
    pod_put_text(c, pod_plural(bad.count, "forbidden annotation ", "forbidden annotations "));
    pod_put_joined(c, &bad, ", ");
    return pod_check_fail(c, "seccompProfile");
}

static bool fail_seccomp(struct pod_checked *c, const struct setters *bad)
{
    return fail_setters(c, bad, "seccompProfile",
                        " must not set securityContext.seccompProfile.type to ");
}

bool pod_passes_seccomp(struct pod_checked *c)
{
    if (c->minor < POD_SECCOMP_FIELDS_MINOR)
        return passes_seccomp_annotations(c);
    struct setters bad = find_setters(c, "seccompProfile", is_other_profile);
    return !some_set(&bad) || fail_seccomp(c, &bad);
}

bool pod_passes_seccomp_set(struct pod_checked *c)
{
    if (runs_windows(c))
        return true;
    struct setters bad = find_setters(c, "seccompProfile", is_other_profile);
    if (some_set(&bad))
        return fail_seccomp(c, &bad);
    if (bad.pod_sets)
        return true;
    struct pod_words unset = find_unset(c, "seccompProfile");
    return !unset.count ||
           fail_unset(c, &unset, "seccompProfile",
                      " must set securityContext.seccompProfile.type to \"RuntimeDefault\" or "
                      "\"Localhost\"");
}

/* -- Capabilities -- */

static bool is_default_capability(struct slice name)
{
    static const char *const all[] = {
        "AUDIT_WRITE",      "CHOWN",   "DAC_OVERRIDE", "FOWNER",  "FSETID", "KILL",      "MKNOD",
        "NET_BIND_SERVICE", "SETFCAP", "SETGID",       "SETPCAP", "SETUID", "SYS_CHROOT"};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (slice_is(name, all[i]))
            return true;
    return false;
}

static bool is_bind_capability(struct slice name)
{
    return slice_is(name, "NET_BIND_SERVICE");
}

/* Containers that add a capability that is not allowed, and those capabilities. */
struct adders {
    struct pod_words containers, capabilities;
};

static struct adders find_adders(struct pod_checked *c, bool (*is_allowed)(struct slice name))
{
    struct adders adders = {0};
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk)) {
        size_t before = adders.capabilities.count;
        for (const struct json_node *added =
                 json_node_items_at(walk.now, "securityContext.capabilities.add");
             added; added = added->next) {
            struct slice name = pod_text_of(c, added);
            if (!is_allowed(name))
                pod_words_add(c, &adders.capabilities, name);
        }
        if (adders.capabilities.count > before)
            pod_words_add(c, &adders.containers, pod_name_of(c, walk.now));
    }
    pod_words_sort(&adders.capabilities);
    return adders;
}

static void put_adders(struct pod_checked *c, const struct adders *adders)
{
    pod_put_containers(c, &adders->containers);
    pod_put_text(c, " must not include ");
    pod_put_quoted(c, &adders->capabilities);
    pod_put_text(c, " in securityContext.capabilities.add");
}

bool pod_passes_default_capabilities(struct pod_checked *c)
{
    struct adders adders = find_adders(c, is_default_capability);
    if (!adders.containers.count)
        return true;
    put_adders(c, &adders);
    return pod_check_fail(c, "non-default capabilities");
}

static bool drops_all(const struct json_node *container)
{
    const struct json_node *one =
        json_node_items_at(container, "securityContext.capabilities.drop");
    while (one && !json_node_is_text(one, "ALL"))
        one = one->next;
    return one;
}

bool pod_passes_capabilities(struct pod_checked *c)
{
    struct pod_words keepers = {0};
    if (runs_windows(c))
        return true;
    for (struct pod_containers walk = pod_containers_of(c); walk.now; pod_containers_next(&walk))
        if (!drops_all(walk.now))
            pod_words_add(c, &keepers, pod_name_of(c, walk.now));
    struct adders adders = find_adders(c, is_bind_capability);
    if (!keepers.count && !adders.containers.count)
        return true;
    if (keepers.count) {
        pod_put_containers(c, &keepers);
        pod_put_text(c, " must set securityContext.capabilities.drop=[\"ALL\"]");
    }
    if (keepers.count && adders.containers.count)
        pod_put_text(c, "; ");
    if (adders.containers.count)
        put_adders(c, &adders);
    return pod_check_fail(c, "unrestricted capabilities");
}
