/*
 * The certificates of the module muster-tls.so: PEM in, PEM out, through OpenSSL's libcrypto. What
 * comes from outside is a request, or the chain of a peer: bounded texts, of which only a key, or a
 * fingerprint, is taken.
 */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "net/tls_module.h"

#define SERIAL_BITS 127
#define CHAIN_MAX 16
#define ALT_MAX 4096

static void bio_freep(BIO **b)
{
    BIO_free(*b);
}

static void key_freep(EVP_PKEY **k)
{
    EVP_PKEY_free(*k);
}

static void cert_freep(X509 **c)
{
    X509_free(*c);
}

static void request_freep(X509_REQ **r)
{
    X509_REQ_free(*r);
}

static int failed(struct err *err, int code, const char *what)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());

    err_set(err, code, "%s: %s", what, reason ? reason : "it is not usable");
    ERR_clear_error();
    return code;
}

static BIO *reader(const char *text)
{
    size_t len = strnlen(text, CERT_PEM_MAX);

    ERR_clear_error();
    return BIO_new_mem_buf(text, (int)len);
}

static char *written(BIO *bio)
{
    char *data;
    long len = BIO_get_mem_data(bio, &data);

    return xstrndup(data, len > 0 ? (size_t)len : 0);
}

/* --- reading ------------------------------------------------------------------------------ */

static int no_password(char *buf, int size, int writing, void *arg)
{
    return -1; /* else OpenSSL would ask on the terminal */
}

static int read_key(const char *text, EVP_PKEY **ret, struct err *err)
{
    _cleanup_(bio_freep) BIO *bio = reader(text);

    *ret = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_password, NULL) : NULL;
    return *ret ? 0 : failed(err, -EINVAL, "the key");
}

static X509 *next_cert(BIO *bio)
{
    return bio ? PEM_read_bio_X509(bio, NULL, no_password, NULL) : NULL;
}

static int read_cert(const char *text, X509 **ret, struct err *err)
{
    _cleanup_(bio_freep) BIO *bio = reader(text);

    *ret = next_cert(bio);
    return *ret ? 0 : failed(err, -EINVAL, "the certificate");
}

/* Keys of one kind only: others would be weaker, or a way to make verifying dear. */
static bool is_our_kind(const EVP_PKEY *key)
{
    char group[32];
    size_t len;

    return key && EVP_PKEY_is_a(key, "EC") &&
        EVP_PKEY_get_group_name((EVP_PKEY *)key, group, sizeof(group), &len) == 1 &&
        str_eq(group, "prime256v1");
}

static int read_request(const char *text, X509_REQ **ret, struct err *err)
{
    _cleanup_(bio_freep) BIO *bio = reader(text);
    _cleanup_(request_freep)
        X509_REQ *request = bio ? PEM_read_bio_X509_REQ(bio, NULL, no_password, NULL) : NULL;
    EVP_PKEY *key;

    if (!request)
        return failed(err, -EINVAL, "the certificate request");
    key = X509_REQ_get0_pubkey(request);
    if (!is_our_kind(key)) {
        ERR_clear_error();
        return err_set(err, -EINVAL, "the key of the certificate request is not one on P-256");
    }
    if (X509_REQ_verify(request, key) != 1)
        return failed(err, -EINVAL, "the signature of the certificate request");
    *ret = TAKE_PTR(request);
    return 0;
}

/* --- what a certificate says -------------------------------------------------------------- */

/* A part of the subject; "" when there is none. False: it was cut, or has a NUL inside. */
static bool subject_part(X509 *cert, int nid, char text[CERT_NAME_MAX + 1])
{
    int n = X509_NAME_get_text_by_NID(X509_get_subject_name(cert), nid, NULL, 0);

    text[0] = '\0';
    if (n < 0)
        return true;
    if (n > CERT_NAME_MAX)
        return false;
    n = X509_NAME_get_text_by_NID(X509_get_subject_name(cert), nid, text, CERT_NAME_MAX + 1);
    return strlen(text) == (size_t)n;
}

static uint64_t usec_of(const ASN1_TIME *time)
{
    struct tm tm;
    time_t t;

    if (ASN1_TIME_to_tm(time, &tm) != 1)
        return 0;
    t = timegm(&tm);
    return t > 0 ? (uint64_t)t * 1000000 : 0;
}

static bool fingerprint_of(X509 *cert, char text[CERT_FINGERPRINT_MAX])
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned len;

    if (X509_digest(cert, EVP_sha256(), digest, &len) != 1)
        return false;
    snprintf(text, CERT_FINGERPRINT_MAX, "sha256:");
    for (unsigned i = 0; i < len; i++)
        snprintf(text + 7 + 2 * i, 3, "%02x", digest[i]);
    return true;
}

bool cert_info_of(X509 *cert, struct cert_info *ret)
{
    *ret = (struct cert_info){
        .from_usec = usec_of(X509_get0_notBefore(cert)),
        .until_usec = usec_of(X509_get0_notAfter(cert)),
        .is_authority = X509_check_ca(cert) == 1 &&
            X509_NAME_cmp(X509_get_subject_name(cert), X509_get_issuer_name(cert)) == 0,
    };
    return subject_part(cert, NID_commonName, ret->name) && ret->name[0] &&
        subject_part(cert, NID_organizationalUnitName, ret->role) &&
        subject_part(cert, NID_serialNumber, ret->mark) && fingerprint_of(cert, ret->fingerprint);
}

int module_cert_read(const char *text, struct cert_info *ret, struct err *err)
{
    _cleanup_(cert_freep) X509 *cert = NULL;
    int r = read_cert(text, &cert, err);

    if (r == 0 && !cert_info_of(cert, ret))
        r = err_set(err, -EINVAL, "the certificate: its subject is none that Muster makes");
    return r;
}

bool module_cert_is_for(const char *text, const char *host)
{
    _cleanup_(cert_freep) X509 *cert = NULL;

    if (read_cert(text, &cert, NULL) < 0)
        return false;
    return X509_check_ip_asc(cert, host, 0) == 1 || X509_check_host(cert, host, 0, 0, NULL) == 1;
}

char *cert_append(char *text, X509 *cert)
{
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());
    _cleanup_free_ char *one = NULL;
    char *both;

    if (!bio || PEM_write_bio_X509(bio, cert) != 1)
        return text;
    one = written(bio);
    both = xasprintf("%s%s", text ? text : "", one);
    free(text);
    return both;
}

int module_cert_find(const char *text, const char *fingerprint, char **ret, struct err *err)
{
    _cleanup_(bio_freep) BIO *bio = reader(text);

    for (unsigned i = 0; i < CHAIN_MAX; i++) {
        _cleanup_(cert_freep) X509 *cert = next_cert(bio);
        char own[CERT_FINGERPRINT_MAX];

        if (!cert)
            break;
        if (fingerprint_of(cert, own) && str_eq(own, fingerprint)) {
            *ret = cert_append(NULL, cert);
            return 0;
        }
    }
    ERR_clear_error();
    return err_set(err, -ENOENT, "no certificate has the fingerprint %s", fingerprint);
}

/* --- making ------------------------------------------------------------------------------- */

int module_cert_key_new(char **ret_key, struct err *err)
{
    _cleanup_(key_freep) EVP_PKEY *key = EVP_EC_gen("P-256");
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());

    if (!key || !bio || PEM_write_bio_PKCS8PrivateKey(bio, key, NULL, NULL, 0, NULL, NULL) != 1)
        return failed(err, -EIO, "OpenSSL cannot make a key");
    *ret_key = written(bio);
    return 0;
}

int module_cert_request_new(const char *key_text, char **ret_request, struct err *err)
{
    _cleanup_(key_freep) EVP_PKEY *key = NULL;
    _cleanup_(request_freep) X509_REQ *request = X509_REQ_new();
    _cleanup_(bio_freep) BIO *bio = BIO_new(BIO_s_mem());
    int r = read_key(key_text, &key, err);

    if (r < 0)
        return r;
    if (!request || !bio || X509_REQ_set_pubkey(request, key) != 1 ||
        X509_REQ_sign(request, key, EVP_sha256()) <= 0 || PEM_write_bio_X509_REQ(bio, request) != 1)
        return failed(err, -EIO, "OpenSSL cannot make a request");
    *ret_request = written(bio);
    return 0;
}

static bool set_part(X509 *cert, int nid, const char *text)
{
    return !text ||
        X509_NAME_add_entry_by_NID(X509_get_subject_name(cert), nid, MBSTRING_UTF8,
            (const unsigned char *)text, -1, -1, 0) == 1;
}

/* Nobody can know beforehand what is signed. */
static bool set_serial(X509 *cert)
{
    BIGNUM *number = BN_new();
    bool set = number && BN_rand(number, SERIAL_BITS, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ANY) == 1 &&
        BN_to_ASN1_INTEGER(number, X509_get_serialNumber(cert));

    BN_free(number);
    return set;
}

static bool set_times(X509 *cert, const struct cert_order *o)
{
    return ASN1_TIME_set(X509_getm_notBefore(cert), (time_t)(o->from_usec / 1000000)) &&
        ASN1_TIME_set(X509_getm_notAfter(cert), (time_t)(o->until_usec / 1000000));
}

static bool extend(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509_EXTENSION *extension;
    X509V3_CTX ctx;
    bool added;

    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    added = extension && X509_add_ext(cert, extension, -1) == 1;
    X509_EXTENSION_free(extension);
    return added;
}

/* X509v3's little language must not be spoken by a name: "a,DNS:b" would be two. */
static bool is_plain(const char *host)
{
    return host[0] && strlen(host) < 256 &&
        strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._:*") ==
        strlen(host);
}

static bool is_address(const char *host)
{
    ASN1_OCTET_STRING *address = a2i_IPADDRESS(host);

    ASN1_OCTET_STRING_free(address);
    ERR_clear_error();
    return address != NULL;
}

static bool extend_names(X509 *cert, X509 *issuer, char *const *hosts)
{
    _cleanup_(buf_done) struct buf names = BUF_INIT(ALT_MAX);

    for (char *const *h = hosts; h && *h; h++)
        if (!is_plain(*h) ||
            buf_printf(&names, "%s%s:%s", names.len ? "," : "", is_address(*h) ? "IP" : "DNS", *h) <
                0)
            return false;
    return !names.len || extend(cert, issuer, NID_subject_alt_name, names.data);
}

static bool extend_use(X509 *cert, X509 *issuer, const struct cert_order *o)
{
    bool authority = o->use == CERT_AUTHORITY;

    if (!extend(cert, issuer, NID_basic_constraints,
            authority ? "critical,CA:TRUE,pathlen:0" : "critical,CA:FALSE") ||
        !extend(cert, issuer, NID_key_usage,
            authority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature") ||
        !extend(cert, issuer, NID_subject_key_identifier, "hash"))
        return false;
    if (authority)
        return true;
    return extend(cert, issuer, NID_authority_key_identifier, "keyid") &&
        extend(
            cert, issuer, NID_ext_key_usage, o->use == CERT_SERVER ? "serverAuth" : "clientAuth") &&
        extend_names(cert, issuer, o->reached_by);
}

/* issuer NULL: by itself. */
static int sign(EVP_PKEY *subject_key, X509 *issuer, EVP_PKEY *key, const struct cert_order *o,
    char **ret, struct err *err)
{
    _cleanup_(cert_freep) X509 *cert = X509_new();
    bool made = cert && X509_set_version(cert, X509_VERSION_3) == 1 && set_serial(cert) &&
        set_times(cert, o) && set_part(cert, NID_commonName, o->name) &&
        set_part(cert, NID_organizationalUnitName, o->role) &&
        set_part(cert, NID_serialNumber, o->mark) &&
        X509_set_issuer_name(cert, X509_get_subject_name(issuer ? issuer : cert)) == 1 &&
        X509_set_pubkey(cert, subject_key) == 1 && extend_use(cert, issuer ? issuer : cert, o) &&
        X509_sign(cert, key, EVP_sha256()) > 0;

    if (!made)
        return failed(err, -EINVAL, "OpenSSL cannot make a certificate");
    *ret = cert_append(NULL, cert);
    return 0;
}

int module_cert_sign(const char *authority, const char *authority_key, const char *request,
    const struct cert_order *order, char **ret, struct err *err)
{
    _cleanup_(cert_freep) X509 *issuer = NULL;
    _cleanup_(key_freep) EVP_PKEY *key = NULL;
    _cleanup_(request_freep) X509_REQ *asked = NULL;
    int r = read_cert(authority, &issuer, err);

    if (r == 0)
        r = read_key(authority_key, &key, err);
    if (r == 0 && X509_check_private_key(issuer, key) != 1)
        r = failed(err, -EINVAL, "the authority's key");
    if (r == 0)
        r = read_request(request, &asked, err);
    return r < 0 ? r : sign(X509_REQ_get0_pubkey(asked), issuer, key, order, ret, err);
}

int module_cert_authority_new(
    const char *key_text, const struct cert_order *order, char **ret, struct err *err)
{
    _cleanup_(key_freep) EVP_PKEY *key = NULL;
    int r = read_key(key_text, &key, err);

    return r < 0 ? r : sign(key, NULL, key, order, ret, err);
}
