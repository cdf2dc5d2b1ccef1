#include "cmd/ctl/admin/password.h"

#include "cmd/ctl/session.h"

/* Without the spaces around it, which etcdctl removes, too. */
static const char *ask(struct ctl *ctl, const char *prompt)
{
    const char *typed = ctl_ask_hidden(ctl, prompt);
    if (!typed)
        return NULL;
    struct slice trimmed = slice_trim(slice_from_text(typed));
    char *copy = arena_alloc(ctl->arena, trimmed.len + 1);
    if (!copy) {
        ctl_fail(ctl, CTL_ERROR, "out of memory");
        return NULL;
    }
    slice_copy(copy, trimmed);
    copy[trimmed.len] = '\0';
    return copy;
}

const char *password_ask_new(struct ctl *ctl, const char *user)
{
    char prompt[512];
    snprintf(prompt, sizeof(prompt), "Password of %s: ", user);
    const char *password = ask(ctl, prompt);
    if (!password)
        return NULL;
    if (!*password) {
        ctl_refuse(ctl, "empty password");
        return NULL;
    }
    snprintf(prompt, sizeof(prompt), "Type password of %s again for confirmation: ", user);
    const char *again = ask(ctl, prompt);
    if (!again)
        return NULL;
    if (strcmp(again, password) != 0) {
        ctl_refuse(ctl, "given passwords are different");
        return NULL;
    }
    return password;
}

const char *password_scan(struct ctl *ctl)
{
    static char line[PASSWORD_LINE_MAX + 2]; /* with the end of the line and of the text */
    if (!fgets(line, sizeof(line), stdin))
        return "";
    if (strlen(line) == sizeof(line) - 1 && line[sizeof(line) - 2] != '\n') {
        ctl_refuse(ctl, "the password has more than %d bytes", PASSWORD_LINE_MAX);
        return NULL;
    }
    char *begin = line + strspn(line, " \t\r");
    begin[strcspn(begin, " \t\r\n")] = '\0';
    return begin;
}
