/* APIService. */
#include "kube/types/validate/kinds.h"
#include "kube/types/validate/names.h"
#include "kube/types/validate/rules.h"

#include <stdio.h>

enum { GROUP_PRIORITY_MAX = 20000, VERSION_PRIORITY_MAX = 1000 };

static void check_api_name(struct check *c, const struct json_node *object,
                           const struct json_node *spec)
{
    struct slice name = rule_text(c, rule_member(object, "metadata"), "name");
    struct slice version = rule_text(c, spec, "version"), group = rule_text(c, spec, "group");
    char wanted[320], why[400];
    snprintf(wanted, sizeof(wanted), "%.*s.%.*s", (int)size_min(version.len, 63),
             (const char *)version.ptr, (int)size_min(group.len, 253), (const char *)group.ptr);
    snprintf(why, sizeof(why), "must be `spec.version+\".\"+spec.group`: \"%s\"", wanted);
    if (name.len && segment_valid(name, (char[NAME_ERROR_BYTES]){0}) && !slice_is(name, wanted))
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
    static const struct rule rules[] = {
        {"namespace", NEEDED, WHY(NULL)},
        {"name", NEEDED, WHY(NULL)},
        {"port", IF_SET,
         WITHIN(1, UINT16_MAX, "port is not valid: must be between 1 and 65535, inclusive")},
    };
    rule_rows(c, AT(at, "service"), rule_member(spec, "service"), rules);
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
    static const struct rule rules[] = {
        {"version", ALWAYS, NAME(dns_1035_valid)},
        {"groupPriorityMinimum", ALWAYS,
         WITHIN(1, GROUP_PRIORITY_MAX, "must be positive and less than 20000")},
        {"versionPriority", ALWAYS,
         WITHIN(1, VERSION_PRIORITY_MAX, "must be positive and less than 1000")},
    };
    (void)old;
    check_api_name(c, object, spec);
    if (group.len)
        rule_name(c, AT(at, "group"), group, subdomain_valid);
    else if (!slice_is(version, "v1"))
        bad_required(c, AT(at, "group"),
                     "only v1 may have an empty group and it better be legacy kube");
    rule_rows(c, at, spec, rules);
    if (rule_member(spec, "service"))
        check_remote(c, at, spec);
    else
        check_local(c, at, spec);
}

void kube_validate_api_service_status(struct check *c, const struct json_node *object,
                                      const struct json_node *old)
{
    static const struct rule of_status[] = {{"status", ALWAYS, CHOICE("True,False,Unknown")}};
    (void)old;
    rule_one(c, AT(NULL, "status"), rule_member(object, "status"), "conditions", EACH,
             ROWS(of_status));
}
