/* Security contexts of pods and containers. */
#include "kube/types/validate/rules.h"
#include "kube/types/validate/workload/pod.h"
#include "kube/types/validate/workload/volume.h"

#include <stdio.h>

static void check_id(struct check *c, const struct at *at, int64_t id)
{
    rule_range(c, at, id, 0, INT32_MAX);
}

#define PROFILES "Localhost,RuntimeDefault,Unconfined"

static void check_seccomp(struct check *c, const struct at *at, const struct json_node *profile)
{
    struct slice type = rule_text(c, profile, "type");
    const struct json_node *local = rule_member(profile, "localhostProfile");
    rule_one(c, at, profile, "type", NEEDED, WHY("type is required when seccompProfile is set"),
             CHOICE(PROFILES));
    if (slice_is(type, "Localhost")) {
        if (local) {
            const struct at *in = AT(at, "localhostProfile");
            struct slice path = rule_text_of(c, local);
            if (path.len && path.ptr[0] == '/')
                bad_text(c, in, path, "must be a relative path");
            rule_path_stays(c, in, path);
        } else {
            bad_required(c, AT(at, "localhostProfile"),
                         "must be set when seccomp type is Localhost");
        }
    } else if (local) {
        struct slice text = rule_text_of(c, local);
        char json[512];
        snprintf(json, sizeof(json), "{\"Type\":\"%.*s\",\"LocalhostProfile\":\"%.*s\"}",
                 (int)size_min(type.len, 100), (const char *)type.ptr, (int)size_min(text.len, 300),
                 (const char *)text.ptr);
        bad_raw(c, AT(at, "localhostProfile"), json,
                "can only be set when seccomp type is Localhost");
    }
}

static void check_app_armor(struct check *c, const struct at *at, const struct json_node *profile)
{
    struct slice type = rule_text(c, profile, "type");
    const struct json_node *local = rule_member(profile, "localhostProfile");
    rule_one(c, at, profile, "type", NEEDED, WHY("type is required when appArmorProfile is set"),
             CHOICE(PROFILES));
    if (slice_is(type, "Localhost")) {
        if (!rule_text_of(c, local).len)
            bad_required(c, AT(at, "localhostProfile"),
                         "must be set when AppArmor type is Localhost");
    } else if (local && rule_one_of(type, PROFILES)) {
        bad_node(c, AT(at, "localhostProfile"), local,
                 "can only be set when AppArmor type is Localhost");
    }
}

/* -- Containers -- */

static bool adds_admin(const struct json_node *context)
{
    const struct json_node *list = rule_member(rule_member(context, "capabilities"), "add");
    const struct json_node *item = rule_first(list);
    while (item && !json_node_is_text(item, "CAP_SYS_ADMIN"))
        item = item->next;
    return item;
}

static void check_escalation(struct check *c, const struct at *at, const struct json_node *context)
{
    const struct json_node *allowed = rule_member(context, "allowPrivilegeEscalation");
    /* Only a container that must not gain privileges can contradict itself here. */
    if (!allowed || allowed->truth)
        return;
    if (rule_truth(context, "privileged"))
        bad_node(c, at, context,
                 "cannot set `allowPrivilegeEscalation` to false and `privileged` to true");
    if (adds_admin(context))
        bad_node(c, at, context,
                 "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` "
                 "CAP_SYS_ADMIN");
}

void rule_security(struct check *c, const struct at *at, const struct json_node *context,
                   const struct json_node *pod_spec)
{
    static const struct rule rules[] = {
        {"runAsUser", IF_SET, NUMBER(check_id)},
        {"runAsGroup", IF_SET, NUMBER(check_id)},
        {"procMount", IF_SET, CHOICE("Default,Unmasked")},
    };
    static const struct rule rest[] = {
        {"seccompProfile", IF_SET, PART(check_seccomp)},
        {NULL, ALWAYS, PART(check_escalation)},
        {"appArmorProfile", IF_SET, PART(check_app_armor)},
    };
    const struct json_node *mount = rule_member(context, "procMount");
    const struct json_node *users = rule_member(pod_spec, "hostUsers");
    /* A container without a security context runs with the settings of its pod. */
    if (!context)
        return;
    if (c->unprivileged && rule_truth(context, "privileged"))
        bad_forbidden(c, AT(at, "privileged"), "disallowed by cluster policy");
    rule_rows(c, at, context, rules);
    /* The pod shares the users of its node, so that an unmasked /proc would expose the node's. */
    if (json_node_is_text(mount, "Unmasked") && (!users || users->truth))
        bad_text(c, AT(at, "procMount"), rule_text_of(c, mount),
                 "`hostUsers` must be false to use `Unmasked`");
    rule_rows(c, at, context, rest);
}

/* -- Pods -- */

static bool sysctl_valid(struct slice name, char why[NAME_ERROR_BYTES])
{
    bool begins = true;
    why[0] = '\0';
    for (size_t i = 0; i < name.len && name.len <= 253; i++) {
        uint8_t at = name.ptr[i];
        bool lower = (at >= 'a' && at <= 'z') || (at >= '0' && at <= '9');
        bool ends = i + 1 == name.len || name.ptr[i + 1] == '.' || name.ptr[i + 1] == '/';
        bool step = at == '.' || at == '/';
        if (step ? begins || i + 1 == name.len
                 : !lower && (begins || ends || (at != '-' && at != '_')))
            return false;
        begins = step;
    }
    return name.len && name.len <= 253;
}

static void check_sysctls(struct check *c, const struct at *at, const struct json_node *list)
{
    struct seen names = {0};
    char ignored[NAME_ERROR_BYTES];
    size_t i = 0;
    for (const struct json_node *item = rule_first(list); item; item = item->next, i++) {
        struct slice name = rule_text(c, item, "name");
        const struct at *in = AT(AT_ITEM(at, i), "name");
        if (!name.len)
            bad_required(c, in, NULL);
        else if (!sysctl_valid(name, ignored))
            bad_text(c, in, name,
                     "must have at most 253 characters and match regex "
                     "^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$");
        else if (!seen_add(c, &names, name))
            bad_repeat(c, in, name);
    }
}

void rule_pod_security(struct check *c, const struct at *at, const struct json_node *spec)
{
    static const struct rule of_users[] = {
        {"fsGroup", IF_SET, NUMBER(check_id)},
        {"runAsUser", IF_SET, NUMBER(check_id)},
        {"runAsGroup", IF_SET, NUMBER(check_id)},
        {"supplementalGroups", EACH, NUMBER(check_id)},
    };
    static const struct rule rest[] = {
        {"sysctls", ALWAYS, PART(check_sysctls)},
        {"fsGroupChangePolicy", IF_SET, CHOICE("Always,OnRootMismatch")},
        {"seccompProfile", IF_SET, PART(check_seccomp)},
        {"appArmorProfile", IF_SET, PART(check_app_armor)},
        {"supplementalGroupsPolicy", IF_SET, CHOICE("Merge,Strict")},
    };
    const struct json_node *context = rule_member(spec, "securityContext");
    rule_rows(c, at, context, of_users);
    if (rule_truth(spec, "shareProcessNamespace") && rule_truth(spec, "hostPID"))
        bad_node(c, AT(at, "shareProcessNamespace"), rule_member(spec, "shareProcessNamespace"),
                 "ShareProcessNamespace and HostPID cannot both be enabled");
    rule_rows(c, at, context, rest);
}
