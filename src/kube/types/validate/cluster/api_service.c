/* APIService. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"

#include <stdio.h>

enum { GROUP_PRIORITY_MAX = 20000, VERSION_PRIORITY_MAX = 1000, PORT_HTTPS = 443 };

static void check_api_name(struct check *c, const struct json_node *object,
                           const struct json_node *spec)
{
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    struct slice version = rule_text(c, spec, "version"), group = rule_text(c, spec, "group");
    char wanted[320], why[400];
    snprintf(wanted, sizeof(wanted), "%.*s.%.*s", (int)size_min(version.len, 63),
             (const char *)version.ptr, (int)size_min(group.len, 253), (const char *)group.ptr);
    snprintf(why, sizeof(why), "must be `spec.version+\".\"+spec.group`: \"%s\"", wanted);
    if (name.len && segment_valid(name, (char[NAME_ERROR_BYTES]){0}) &&
        !slice_equal(name, slice_from_text(wanted)))
        bad_text(c, AT(AT(NULL, "metadata"), "name"), name, why);
}

static void check_local(struct check *c, const struct at *at, const struct json_node *spec)
{
    struct slice bundle = rule_text(c, spec, "caBundle");
    char size[32];
    size_t padding = 0;
    while (padding < size_min(bundle.len, 2) && bundle.ptr[bundle.len - 1 - padding] == '=')
        padding++;
    snprintf(size, sizeof(size), "%zu bytes", bundle.len / 4 * 3 - padding);
    if (bundle.len)
        bad_text(c, AT(at, "caBundle"), slice_from_text(size),
                 "local APIServices may not have a caBundle");
    if (rule_truth(spec, "insecureSkipTLSVerify"))
        bad_raw(c, AT(at, "insecureSkipTLSVerify"), "true",
                "local APIServices may not have insecureSkipTLSVerify");
}

static void check_remote(struct check *c, const struct at *at, const struct json_node *spec)
{
    const struct json_node *service = rule_member(spec, "service");
    const struct at *in = AT(at, "service");
    int64_t port = rule_int(service, "port", PORT_HTTPS);
    if (!rule_text(c, service, "namespace").len)
        bad_required(c, AT(in, "namespace"), NULL);
    if (!rule_text(c, service, "name").len)
        bad_required(c, AT(in, "name"), NULL);
    if (port < 1 || port > UINT16_MAX)
        bad_int(c, AT(in, "port"), port,
                "port is not valid: must be between 1 and 65535, inclusive");
    if (rule_truth(spec, "insecureSkipTLSVerify") && rule_text(c, spec, "caBundle").len)
        bad_raw(c, AT(at, "insecureSkipTLSVerify"), "true",
                "may not be true if caBundle is present");
}

void kube_validate_api_service(struct check *c, const struct json_node *object,
                               const struct json_node *old)
{
    const struct json_node *spec = rule_member(object, "spec");
    const struct at *at = AT(NULL, "spec");
    struct slice group = rule_text(c, spec, "group"), version = rule_text(c, spec, "version");
    int64_t of_group = rule_int(spec, "groupPriorityMinimum", 0);
    int64_t of_version = rule_int(spec, "versionPriority", 0);
    (void)old;
    check_api_name(c, object, spec);
    if (group.len)
        rule_name(c, AT(at, "group"), group, subdomain_valid);
    else if (!slice_equal(version, SLICE_LITERAL("v1")))
        bad_required(c, AT(at, "group"),
                     "only v1 may have an empty group and it better be legacy kube");
    rule_name(c, AT(at, "version"), version, dns_1035_valid);
    if (of_group <= 0 || of_group > GROUP_PRIORITY_MAX)
        bad_int(c, AT(at, "groupPriorityMinimum"), of_group,
                "must be positive and less than 20000");
    if (of_version <= 0 || of_version > VERSION_PRIORITY_MAX)
        bad_int(c, AT(at, "versionPriority"), of_version, "must be positive and less than 1000");
    if (rule_member(spec, "service"))
        check_remote(c, at, spec);
    else
        check_local(c, at, spec);
}

void kube_validate_api_service_status(struct check *c, const struct json_node *object,
                                      const struct json_node *old)
{
    const struct at *at = AT(AT(NULL, "status"), "conditions");
    size_t i = 0;
    (void)old;
    for (const struct json_node *item = rule_first(json_node_path(object, "status.conditions"));
         item; item = item->next, i++)
        rule_choice(c, AT(AT_ITEM(at, i), "status"), rule_text(c, item, "status"),
                    "True,False,Unknown");
}
