/* Why a handshake failed, in the words of Go's TLS, which etcd's operators know. */
#include "net/tls/context.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdio.h>

static const struct {
    int alert;
    const char *text;
} alerts[] = {
    {SSL_AD_CLOSE_NOTIFY, "close notify"},
    {SSL_AD_UNEXPECTED_MESSAGE, "unexpected message"},
    {SSL_AD_BAD_RECORD_MAC, "bad record MAC"},
    {SSL_AD_RECORD_OVERFLOW, "record overflow"},
    {SSL_AD_HANDSHAKE_FAILURE, "handshake failure"},
    {SSL_AD_BAD_CERTIFICATE, "bad certificate"},
    {SSL_AD_UNSUPPORTED_CERTIFICATE, "unsupported certificate"},
    {SSL_AD_CERTIFICATE_REVOKED, "revoked certificate"},
    {SSL_AD_CERTIFICATE_EXPIRED, "expired certificate"},
    {SSL_AD_CERTIFICATE_UNKNOWN, "unknown certificate"},
    {SSL_AD_ILLEGAL_PARAMETER, "illegal parameter"},
    {SSL_AD_UNKNOWN_CA, "unknown certificate authority"},
    {SSL_AD_ACCESS_DENIED, "access denied"},
    {SSL_AD_DECODE_ERROR, "error decoding message"},
    {SSL_AD_DECRYPT_ERROR, "error decrypting message"},
    {SSL_AD_PROTOCOL_VERSION, "protocol version not supported"},
    {SSL_AD_INSUFFICIENT_SECURITY, "insufficient security level"},
    {SSL_AD_INTERNAL_ERROR, "internal error"},
    {SSL_AD_USER_CANCELLED, "user canceled"},
    {SSL_AD_NO_RENEGOTIATION, "no renegotiation"},
    {SSL_AD_UNSUPPORTED_EXTENSION, "unsupported extension"},
    {SSL_AD_UNRECOGNIZED_NAME, "unrecognized name"},
    {SSL_AD_CERTIFICATE_REQUIRED, "certificate required"},
    {SSL_AD_NO_APPLICATION_PROTOCOL, "no application protocol"},
};

#define UNSUPPORTED_VERSIONS "tls: client offered only unsupported versions"
#define UNSUPPORTED_VERSION "tls: server selected unsupported protocol version"
#define NOT_TLS "tls: first record does not look like a TLS handshake"

static const struct {
    int reason;
    const char *server, *client; /* what each side says; NULL: OpenSSL's words */
} reasons[] = {
    {SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, "tls: client didn't provide a certificate", NULL},
    {SSL_R_UNSUPPORTED_PROTOCOL, UNSUPPORTED_VERSIONS, UNSUPPORTED_VERSION},
    {SSL_R_VERSION_TOO_LOW, UNSUPPORTED_VERSIONS, UNSUPPORTED_VERSION},
    {SSL_R_NO_SHARED_CIPHER, "tls: no cipher suite supported by both client and server", NULL},
    {SSL_R_NO_APPLICATION_PROTOCOL, "tls: client requested unsupported application protocols",
     NULL},
    {SSL_R_WRONG_VERSION_NUMBER, NOT_TLS, NOT_TLS},
};

static const char *alert_text(int alert)
{
    for (size_t i = 0; i < COUNT_OF(alerts); i++)
        if (alerts[i].alert == alert)
            return alerts[i].text;
    return NULL;
}

static const char *reason_text(const SSL *ssl, int reason)
{
    for (size_t i = 0; i < COUNT_OF(reasons); i++)
        if (reasons[i].reason == reason)
            return SSL_is_server(ssl) ? reasons[i].server : reasons[i].client;
    return NULL;
}

const char *tls_verify_text(long result)
{
    switch (result) {
    case X509_V_ERR_CERT_HAS_EXPIRED:
    case X509_V_ERR_CERT_NOT_YET_VALID:
        return "certificate has expired or is not yet valid";
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_UNTRUSTED:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE: /* the issuer has a known name, but another key */
        return "certificate signed by unknown authority";
    case X509_V_ERR_INVALID_PURPOSE:
        return "certificate specifies an incompatible key usage";
    default:
        return X509_verify_cert_error_string(result);
    }
}

/* Takes the first error that libssl reports, which is more specific than those before it; otherwise
 * the first one. */
static unsigned long take_error(void)
{
    unsigned long found = 0;
    for (unsigned long error; (error = ERR_get_error());)
        if (!found || (ERR_GET_LIB(found) != ERR_LIB_SSL && ERR_GET_LIB(error) == ERR_LIB_SSL))
            found = error;
    return found;
}

void tls_reason_format(const SSL *ssl, const struct tls_peer *peer, char text[TLS_REASON_BYTES])
{
    unsigned long error = take_error();
    int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
    const char *known = reason_text(ssl, reason);
    const char *other = ERR_reason_error_string(error);
    if (peer->refused && peer->reason)
        snprintf(text, TLS_REASON_BYTES, "%s", peer->reason);
    else if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED)
        snprintf(text, TLS_REASON_BYTES, "tls: failed to verify certificate: x509: %s",
                 tls_verify_text(SSL_get_verify_result(ssl)));
    else if (reason > SSL_AD_REASON_OFFSET && alert_text(reason - SSL_AD_REASON_OFFSET))
        snprintf(text, TLS_REASON_BYTES, "remote error: tls: %s",
                 alert_text(reason - SSL_AD_REASON_OFFSET));
    else
        snprintf(text, TLS_REASON_BYTES, "%s%s", known ? "" : "tls: ",
                 known   ? known
                 : other ? other
                         : "the connection is broken");
}
