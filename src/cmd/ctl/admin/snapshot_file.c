/* snapshot status and restore, which etcdctl 3.4 has; later they belong to etcdutl, and to `vigil
 * snapshot`. */
#include "cmd/ctl/admin/admin.h"
#include "cmd/import.h"

int admin_snapshot_status(struct ctl *ctl)
{
    static const int formats[] = {
        [CTL_SIMPLE] = SNAPSHOT_SIMPLE,
        [CTL_FIELDS] = SNAPSHOT_FIELDS,
        [CTL_JSON] = SNAPSHOT_JSON,
        [CTL_TABLE] = SNAPSHOT_TABLE,
    };
    if (ctl->globals.format == CTL_UNKNOWN_FORMAT)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "unsupported output format");
    if (ctl->globals.format == CTL_PROTOBUF)
        return ctl_fail(ctl, CTL_BAD_FEATURE, "protobuf not supported as output format");
    return snapshot_show("Error", ctl->words[0], formats[ctl->globals.format], true);
}

/* The same as `vigil snapshot restore`, which says more. */
int admin_snapshot_restore(struct ctl *ctl)
{
    const struct restore_flags *flags = ctl->flags;
    return snapshot_restore(ctl->words[0], flags->name, flags->data_dir, flags->skip_hash_check)
               ? CTL_ERROR
               : CTL_OK;
}
