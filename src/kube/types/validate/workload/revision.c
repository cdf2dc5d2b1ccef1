/* ControllerRevision. */
#include "kube/types/validate/kinds.h"

void kube_validate_controller_revision(struct check *c, const struct json_node *object,
                                       const struct json_node *old)
{
    const struct json_node *data = rule_member(object, "data");
    rule_not_negative(c, AT(NULL, "revision"), rule_int(object, "revision", 0));
    if (old)
        rule_immutable(c, AT(NULL, "data"), data, rule_member(old, "data"));
    else if (!data)
        bad_required(c, AT(NULL, "data"), "data is mandatory");
    else if (data->type != JSON_TYPE_OBJECT)
        bad_required(c, AT(NULL, "data"), "data must be a valid JSON object");
}
