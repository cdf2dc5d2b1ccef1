/* version, which exists under the name etcdctl alone. */
#include "cmd/ctl/admin/admin.h"

/* Those of the etcdctl whose behaviour this one has. */
#define VERSION_3_7 "3.7.3"
#define VERSION_3_4 "3.4.23"

int admin_version(struct ctl *ctl)
{
    bool old = ctl->style == CTL_ETCDCTL_3_4;
    fprintf(ctl->out, "etcdctl version: %s\nAPI version: %s\n", old ? VERSION_3_4 : VERSION_3_7,
            old ? "3.4" : "3.7");
    return CTL_OK;
}
