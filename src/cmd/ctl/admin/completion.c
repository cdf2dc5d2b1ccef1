/* completion: a script for bash, zsh or fish that completes commands under the name etcdctl. */
#include "cmd/completion_script.h"
#include "cmd/ctl/admin/admin.h"

int admin_completion(struct ctl *ctl)
{
    if (ctl->word_count != 1)
        return ctl_fail(ctl, CTL_ERROR, "accepts 1 arg(s), received %zu", ctl->word_count);
    if (completion_script_write(ctl->words[0], "etcdctl", ctl->out))
        return CTL_OK;
    return ctl_fail(ctl, CTL_ERROR, "invalid argument \"%s\" for \"etcdctl completion\"",
                    ctl->words[0]);
}
