/* auth, user and role: names, words, flags and texts. */
#include "cmd/ctl/admin/admin.h"

#define ANY_WORDS UINT32_MAX

/* -- Flags -- */

#define USER(field) offsetof(struct user_flags, field)

static const struct option user_add_flags[] = {
    {.name = "interactive",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "Ask for the password at the terminal; if false, read it from standard input.",
     .offset = USER(interactive)},
    {.name = "new-user-password",
     .kind = OPTION_TEXT,
     .fallback = "",
     .secret = true,
     .help = "The password. Other users of this machine can see it while the command runs.",
     .offset = USER(password)},
    {.name = "no-password",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Create a user who can sign in with a certificate alone.",
     .offset = USER(no_password)},
};
static const struct option user_passwd_flags[] = {
    {.name = "interactive",
     .kind = OPTION_BOOL,
     .fallback = "true",
     .help = "Ask for the password at the terminal; if false, read it from standard input.",
     .offset = USER(interactive)},
};
static const struct option user_get_flags[] = {
    {.name = "detail",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "Show the permissions of the user's roles, too.",
     .offset = USER(detail)},
};

#define ROLE(field) offsetof(struct role_flags, field)

static const struct option permission_flags[] = {
    {.name = "prefix",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "The permission is for all keys that begin with the key.",
     .offset = ROLE(prefix)},
    {.name = "from-key",
     .kind = OPTION_BOOL,
     .fallback = "false",
     .help = "The permission is for all keys from the key on, in the order of their bytes.",
     .offset = ROLE(from_key)},
};

#define FLAGS(rows, type) \
    .flags = (rows), .flag_count = COUNT_OF(rows), .flags_bytes = sizeof(struct type)

/* -- Commands -- */

static const struct ctl_command commands[] = {
    {.path = "auth enable",
     .words = "",
     .summary = "Enables authentication; from then on every call needs a user",
     .examples = "vigil user add root\nvigil auth enable\n",
     .words_error = "auth enable command does not accept any arguments",
     .run = admin_auth_enable},
    {.path = "auth disable",
     .words = "",
     .summary = "Disables authentication; users and roles are kept",
     .examples = "vigil --user root auth disable\n",
     .words_error = "auth disable command does not accept any arguments",
     .run = admin_auth_disable},
    {.path = "auth status",
     .words = "",
     .summary = "Shows whether authentication is enabled",
     .words_error = "auth status command does not accept any arguments",
     .not_3_4 = true,
     .run = admin_auth_status},

    {.path = "user add",
     .words = "<user name or user:password>",
     .summary = "Adds a user",
     .examples = "vigil user add alice\n"
                 "vigil user add --no-password robot\n"
                 "pass show etcd/alice | vigil user add --interactive=false alice\n",
     FLAGS(user_add_flags, user_flags),
     .words_min = 1,
     .words_max = 1,
     .words_error = "user add command requires user name as its argument",
     .run = admin_user_add},
    {.path = "user delete",
     .words = "<user name>",
     .summary = "Deletes a user",
     .words_min = 1,
     .words_max = 1,
     .words_error = "user delete command requires user name as its argument",
     .run = admin_user_delete},
    {.path = "user get",
     .words = "<user name>",
     .summary = "Shows the roles of a user",
     .examples = "vigil user get --detail alice\n",
     FLAGS(user_get_flags, user_flags),
     .words_min = 1,
     .words_max = 1,
     .words_error = "user get command requires user name as its argument",
     .run = admin_user_get},
    {.path = "user list",
     .words = "",
     .summary = "Lists all users",
     .words_error = "user list command requires no arguments",
     .run = admin_user_list},
    {.path = "user passwd",
     .words = "<user name>",
     .summary = "Changes the password of a user",
     .examples = "vigil user passwd alice\n",
     FLAGS(user_passwd_flags, user_flags),
     .words_min = 1,
     .words_max = 1,
     .words_error = "user passwd command requires user name as its argument",
     .run = admin_user_passwd},
    {.path = "user grant-role",
     .words = "<user name> <role name>",
     .summary = "Gives a user a role",
     .examples = "vigil user grant-role alice readers\n",
     .words_min = 2,
     .words_max = 2,
     .words_error = "user grant command requires user name and role name as its argument",
     .run = admin_user_grant_role},
    {.path = "user revoke-role",
     .words = "<user name> <role name>",
     .summary = "Takes a role from a user",
     .words_min = 2,
     .words_max = 2,
     .words_error = "user revoke-role requires user name and role name as its argument",
     .run = admin_user_revoke_role},

    {.path = "role add",
     .words = "<role name>",
     .summary = "Adds a role without permissions",
     .words_min = 1,
     .words_max = 1,
     .words_error = "role add command requires role name as its argument",
     .run = admin_role_add},
    {.path = "role delete",
     .words = "<role name>",
     .summary = "Deletes a role, also from the users that have it",
     .words_min = 1,
     .words_max = 1,
     .words_error = "role delete command requires role name as its argument",
     .run = admin_role_delete},
    {.path = "role get",
     .words = "<role name>",
     .summary = "Shows the permissions of a role",
     .words_min = 1,
     .words_max = 1,
     .words_error = "role get command requires role name as its argument",
     .run = admin_role_get},
    {.path = "role list",
     .words = "",
     .summary = "Lists all roles",
     .words_error = "role list command requires no arguments",
     .run = admin_role_list},
    {.path = "role grant-permission",
     .words = "<role name> <permission type> <key> [endkey]",
     .summary = "Gives a role a permission: read, write or readwrite",
     .examples = "vigil role grant-permission readers read --prefix /config/\n"
                 "vigil role grant-permission writers readwrite a b\n",
     FLAGS(permission_flags, role_flags),
     .words_min = 3,
     .words_max = ANY_WORDS,
     .words_error = "role grant command requires role name, permission type, and key [endkey] as "
                    "its argument",
     .run = admin_role_grant_permission},
    {.path = "role revoke-permission",
     .words = "<role name> <key> [endkey]",
     .summary = "Takes from a role its permission for exactly this range",
     .examples = "vigil role revoke-permission readers --prefix /config/\n",
     FLAGS(permission_flags, role_flags),
     .words_min = 2,
     .words_max = ANY_WORDS,
     .words_error =
         "role revoke-permission command requires role name and key [endkey] as its argument",
     .run = admin_role_revoke_permission},
};

const struct ctl_group ctl_auth_group = {
    .title = "Authentication commands",
    .commands = commands,
    .count = COUNT_OF(commands),
};
