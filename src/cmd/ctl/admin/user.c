/* user add, delete, get, list, passwd, grant-role and revoke-role. */
#include "cmd/ctl/admin/password.h"
#include "cmd/ctl/admin/role.h"
#include "codec/pb/rpc.pb.h"

/* -- add -- */

/* The name and the password of a new user; the password may be in the word, in a flag, on standard
 * input, or typed. */
struct new_user {
    struct slice name, password;
    bool no_password;
};

static int read_password(struct ctl *ctl, struct slice *ret_password)
{
    const struct user_flags *flags = ctl->flags;
    const char *password =
        flags->interactive ? password_ask_new(ctl, ctl->words[0]) : password_scan(ctl);
    if (!password)
        return CTL_BAD_ARGUMENTS;
    *ret_password = slice_from_text(password);
    return CTL_OK;
}

static int read_new_user(struct ctl *ctl, struct new_user *user)
{
    const struct user_flags *flags = ctl->flags;
    struct slice word = slice_from_text(ctl->words[0]);
    user->name = word;
    user->no_password = flags->no_password;
    if (flags->no_password)
        return CTL_OK;
    if (*flags->password) {
        user->password = slice_from_text(flags->password);
        return CTL_OK;
    }
    if (!memchr(word.ptr, ':', word.len))
        return read_password(ctl, &user->password);
    user->name = slice_cut(&word, ':');
    user->password = word;
    if (!user->name.len)
        return ctl_refuse(ctl, "empty user name is not allowed");
    return CTL_OK;
}

static struct slice added_name; /* without the password */

static void write_created(struct ctl *ctl, const void *response)
{
    (void)response;
    fprintf(ctl->out, "User %.*s created\n", SLICE_ARGS(added_name));
}

int admin_user_add(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_add_response_table,
                                           .simple = write_created,
                                           .fields = admin_fields_header};
    struct new_user user = {.password = SLICE_EMPTY};
    int code = read_new_user(ctl, &user);
    if (code != CTL_OK)
        return code;
    added_name = user.name;
    struct pb_user_add_options options = {.no_password = user.no_password};
    struct pb_auth_user_add_request request = {
        .name = user.name, .password = user.password, .options = &options};
    return admin_call_and_print(ctl, METHOD_USER_ADD, &request, &shape);
}

/* -- The others -- */

int admin_user_delete(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_delete_response_table,
                                           .done = "User %1 deleted\n"};
    struct pb_auth_user_delete_request request = {.name = slice_from_text(ctl->words[0])};
    return admin_call_and_print(ctl, METHOD_USER_DELETE, &request, &shape);
}

static void write_user(struct ctl *ctl, const void *response)
{
    const struct pb_auth_user_get_response *user = response;
    fprintf(ctl->out, "User: %s\nRoles:", ctl->words[0]);
    for (size_t i = 0; i < user->roles_count; i++)
        fprintf(ctl->out, " %.*s", SLICE_ARGS(user->roles[i]));
    fputc('\n', ctl->out);
}

/* The heading is written in every format, as etcdctl does. */
static int show_roles(struct ctl *ctl, const struct pb_auth_user_get_response *user)
{
    int code = CTL_OK;
    fprintf(ctl->out, "User: %s\n", ctl->words[0]);
    for (size_t i = 0; i < user->roles_count && code == CTL_OK; i++) {
        char *name = arena_alloc(ctl->arena, user->roles[i].len + 1);
        if (!name)
            return ctl_fail(ctl, CTL_ERROR, "out of memory");
        slice_copy(name, user->roles[i]);
        name[user->roles[i].len] = '\0';
        fputc('\n', ctl->out);
        code = role_show(ctl, name);
    }
    return code;
}

int admin_user_get(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_get_response_table,
                                           .simple = write_user};
    const struct user_flags *flags = ctl->flags;
    struct pb_auth_user_get_request request = {.name = slice_from_text(ctl->words[0])};
    const void *answer;
    int code = ctl_call(ctl, METHOD_USER_GET, &request, &answer);
    if (code != CTL_OK)
        return code;
    return flags->detail ? show_roles(ctl, answer) : ctl_print(ctl, &shape, answer);
}

static void write_users(struct ctl *ctl, const void *response)
{
    const struct pb_auth_user_list_response *list = response;
    for (size_t i = 0; i < list->users_count; i++)
        fprintf(ctl->out, "%.*s\n", SLICE_ARGS(list->users[i]));
}

int admin_user_list(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_list_response_table,
                                           .simple = write_users};
    static const struct pb_auth_user_list_request request;
    return admin_call_and_print(ctl, METHOD_USER_LIST, &request, &shape);
}

int admin_user_passwd(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_change_password_response_table,
                                           .done = "Password updated\n"};
    struct slice password = SLICE_EMPTY;
    int code = read_password(ctl, &password);
    if (code != CTL_OK)
        return code;
    struct pb_auth_user_change_password_request request = {.name = slice_from_text(ctl->words[0]),
                                                           .password = password};
    return admin_call_and_print(ctl, METHOD_USER_CHANGE_PASSWORD, &request, &shape);
}

int admin_user_grant_role(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_grant_role_response_table,
                                           .done = "Role %2 is granted to user %1\n"};
    struct pb_auth_user_grant_role_request request = {.user = slice_from_text(ctl->words[0]),
                                                      .role = slice_from_text(ctl->words[1])};
    return admin_call_and_print(ctl, METHOD_USER_GRANT_ROLE, &request, &shape);
}

int admin_user_revoke_role(struct ctl *ctl)
{
    static const struct ctl_shape shape = {.type = &pb_auth_user_revoke_role_response_table,
                                           .done = "Role %2 is revoked from user %1\n"};
    struct pb_auth_user_revoke_role_request request = {.name = slice_from_text(ctl->words[0]),
                                                       .role = slice_from_text(ctl->words[1])};
    return admin_call_and_print(ctl, METHOD_USER_REVOKE_ROLE, &request, &shape);
}
