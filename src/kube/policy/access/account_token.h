/*
 * Tokens of service accounts: JSON Web Tokens, signed with one private key and verified with all
 * configured public keys. A key determines the method, RS256 or ES256 (ES384, ES512); neither the
 * method nor the key is chosen by the token. Whether the account and the object that a token is
 * bound to still exist is not known here: kube/policy/access/sign_in.h reads them.
 *
 * Immutable: one for all threads. Times are of the real clock, in seconds.
 */
#ifndef VIGIL_KUBE_POLICY_ACCESS_ACCOUNT_TOKEN_H
#define VIGIL_KUBE_POLICY_ACCESS_ACCOUNT_TOKEN_H

#include "base/buf.h"
#include "base/error.h"
#include "kube/policy/access/rbac/user.h"

struct kube_account_keys;

enum {
    KUBE_ACCOUNT_TOKEN_BYTES_MAX = 16 << 10,
    KUBE_ACCOUNT_KEYS_MAX = 32,
    KUBE_ACCOUNT_KEY_FILE_BYTES_MAX = 256 << 10,
    /* Limit on the audiences of a token, of a request and of the server. */
    KUBE_ACCOUNT_AUDIENCES_MAX = 64,
    KUBE_ACCOUNT_LEEWAY_S = 60, /* between the clocks of servers, as in Kubernetes */
};

/* The values of the flags; lists are separated by commas. "": not given. */
struct kube_account_settings {
    const char *issuers;   /* the first one issues */
    const char *audiences; /* audiences of this server; "": the issuers */
    const char *key_files; /* PEM, each with one or more public keys, certificates or private keys;
                              "": the public key of the signing key */
    const char *signing_key_file; /* PEM; "": no tokens are issued */
};

/* Reads the files. *ret_keys is NULL if none is given. ST_INVALID and others: the error says why.
 */
MUST_CHECK
enum status kube_account_keys_read(const struct kube_account_settings *settings,
                                   struct kube_account_keys **ret_keys, struct error *error);
void kube_account_keys_free(struct kube_account_keys *keys); /* accepts NULL */
DEFINE_CLEANUP(struct kube_account_keys *, kube_account_keys_free)

/* An object that a token is bound to; name empty: none. */
struct kube_account_ref {
    struct slice name, uid;
};

struct kube_account_claims {
    struct slice namespace;
    struct kube_account_ref account;
    struct kube_account_ref pod, secret, node; /* a pod's token may also name its node */
    struct kube_texts audiences;               /* audiences of the token */
    struct slice id;                           /* jti */
    int64_t issued_s, expires_s;
};

struct kube_texts kube_account_audiences(const struct kube_account_keys *keys);
bool kube_account_can_sign(const struct kube_account_keys *keys);

/*
 * Verifies signature, issuer, time and audiences; the claims are in the arena. At least one of the
 * wanted audiences must be one of the token's; NULL: one of the server's.
 * ST_INVALID_AUTH_TOKEN: *ret_why is Kubernetes' text, or a text of its own. ST_NOMEM.
 */
MUST_CHECK
enum status kube_account_verify(const struct kube_account_keys *keys, struct slice token,
                                const struct kube_texts *wanted, int64_t now_s, struct arena *arena,
                                struct kube_account_claims *ret_claims, const char **ret_why);

/* Appends a token. ST_UNIMPLEMENTED without a signing key. */
MUST_CHECK
enum status kube_account_sign(const struct kube_account_keys *keys,
                              const struct kube_account_claims *claims, struct buf *out);

/* The user of verified claims, in the arena; system:authenticated is not one of its groups yet. */
void kube_account_user(struct arena *arena, const struct kube_account_claims *claims,
                       struct kube_user_info *ret_user);

#endif
