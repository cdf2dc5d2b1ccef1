/* auth, user and role: names, words, flags and texts. */
#include "cmd/ctl/admin/admin.h"

/* -- Flags -- */

static const struct option user_add_flags[] = {
    FLAG_TRUE("interactive", user_flags, interactive,
              "Ask for the password at the terminal; if false, read it from standard input."),
    FLAG_TEXT("new-user-password", user_flags, password, "",
              "The password. Other users of this machine can see it while the command runs.",
              .secret = true),
    FLAG_BOOL("no-password", user_flags, no_password,
              "Create a user who can sign in with a certificate alone."),
};
static const struct option user_passwd_flags[] = {
    FLAG_TRUE("interactive", user_flags, interactive,
              "Ask for the password at the terminal; if false, read it from standard input."),
};
static const struct option user_get_flags[] = {
    FLAG_BOOL("detail", user_flags, detail, "Show the permissions of the user's roles, too."),
};

static const struct option permission_flags[] = {
    FLAG_BOOL("prefix", role_flags, prefix,
              "The permission is for all keys that begin with the key."),
    FLAG_BOOL("from-key", role_flags, from_key,
              "The permission is for all keys from the key on, in the order of their bytes."),
};

/* -- Commands -- */

static const struct ctl_command commands[] = {
    COMMAND("auth enable", "", "Enables authentication; from then on every call needs a user",
            admin_auth_enable, WORDS(0, 0, "auth enable command does not accept any arguments"),
            .examples = "vigil user add root\nvigil auth enable\n"),
    COMMAND("auth disable", "", "Disables authentication; users and roles are kept",
            admin_auth_disable, WORDS(0, 0, "auth disable command does not accept any arguments"),
            .examples = "vigil --user root auth disable\n"),
    COMMAND("auth status", "", "Shows whether authentication is enabled", admin_auth_status,
            WORDS(0, 0, "auth status command does not accept any arguments"), .not_3_4 = true),

    COMMAND("user add", "<user name or user:password>", "Adds a user", admin_user_add,
            FLAGS(user_add_flags, user_flags),
            WORDS(1, 1, "user add command requires user name as its argument"),
            .examples = "vigil user add alice\n"
                        "vigil user add --no-password robot\n"
                        "pass show etcd/alice | vigil user add --interactive=false alice\n"),
    COMMAND("user delete", "<user name>", "Deletes a user", admin_user_delete,
            WORDS(1, 1, "user delete command requires user name as its argument")),
    COMMAND("user get", "<user name>", "Shows the roles of a user", admin_user_get,
            FLAGS(user_get_flags, user_flags),
            WORDS(1, 1, "user get command requires user name as its argument"),
            .examples = "vigil user get --detail alice\n"),
    COMMAND("user list", "", "Lists all users", admin_user_list,
            WORDS(0, 0, "user list command requires no arguments")),
    COMMAND("user passwd", "<user name>", "Changes the password of a user", admin_user_passwd,
            FLAGS(user_passwd_flags, user_flags),
            WORDS(1, 1, "user passwd command requires user name as its argument"),
            .examples = "vigil user passwd alice\n"),
    COMMAND("user grant-role", "<user name> <role name>", "Gives a user a role",
            admin_user_grant_role,
            WORDS(2, 2, "user grant command requires user name and role name as its argument"),
            .examples = "vigil user grant-role alice readers\n"),
    COMMAND("user revoke-role", "<user name> <role name>", "Takes a role from a user",
            admin_user_revoke_role,
            WORDS(2, 2, "user revoke-role requires user name and role name as its argument")),

    COMMAND("role add", "<role name>", "Adds a role without permissions", admin_role_add,
            WORDS(1, 1, "role add command requires role name as its argument")),
    COMMAND("role delete", "<role name>", "Deletes a role, also from the users that have it",
            admin_role_delete,
            WORDS(1, 1, "role delete command requires role name as its argument")),
    COMMAND("role get", "<role name>", "Shows the permissions of a role", admin_role_get,
            WORDS(1, 1, "role get command requires role name as its argument")),
    COMMAND("role list", "", "Lists all roles", admin_role_list,
            WORDS(0, 0, "role list command requires no arguments")),
    COMMAND("role grant-permission", "<role name> <permission type> <key> [endkey]",
            "Gives a role a permission: read, write or readwrite", admin_role_grant_permission,
            FLAGS(permission_flags, role_flags),
            WORDS(3, ANY_WORDS,
                  "role grant command requires role name, permission type, and key [endkey] as "
                  "its argument"),
            .examples = "vigil role grant-permission readers read --prefix /config/\n"
                        "vigil role grant-permission writers readwrite a b\n"),
    COMMAND(
        "role revoke-permission", "<role name> <key> [endkey]",
        "Takes from a role its permission for exactly this range", admin_role_revoke_permission,
        FLAGS(permission_flags, role_flags),
        WORDS(2, ANY_WORDS,
              "role revoke-permission command requires role name and key [endkey] as its argument"),
        .examples = "vigil role revoke-permission readers --prefix /config/\n"),
};

const struct ctl_group ctl_auth_group = {
    .title = "Authentication commands",
    .commands = commands,
    .count = COUNT_OF(commands),
};
