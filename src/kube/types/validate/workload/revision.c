/* ControllerRevision. */
#include "kube/types/validate/kinds.h"

void validate_controller_revision(struct check *c, const struct json_node *object,
                                  const struct json_node *old)
{
    const struct json_node *data = member(object, "data");
    check_not_negative(c, AT(NULL, "revision"), int_in(object, "revision", 0));
    if (old)
        check_immutable(c, AT(NULL, "data"), data, member(old, "data"));
    else if (!data)
        bad_required(c, AT(NULL, "data"), "data is mandatory");
    else if (data->type != JSON_TYPE_OBJECT)
        bad_required(c, AT(NULL, "data"), "data must be a valid JSON object");
}
