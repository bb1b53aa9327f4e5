/* SPDX-License-Identifier: MIT */
/* Vectors of FIPS 180-4 and RFC 4231; the others are from Python's hashlib. */
#include "base/sha256.h"

#include "base/macros.h"
#include "base/mem.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static void expect(const unsigned char hash[SHA256_BYTES], const char *wanted)
{
    char text[2 * SHA256_BYTES + 1];
    for (size_t ix = 0; ix < SHA256_BYTES; ix++) {
        (void)snprintf(text + 2 * ix, 3, "%02x", hash[ix]);
    }
    assert_string_equal(text, wanted);
}

static void known_texts_have_their_hashes(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const char *wanted;
    } rows[] = {
        {"",
         "e3b0c44298fc1c149afbf4c8996fb924"
         "27ae41e4649b934ca495991b7852b855"},
        {"abc",
         "ba7816bf8f01cfea414140de5dae2223"
         "b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039"
         "a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        unsigned char hash[SHA256_BYTES];
        sha256(rows[ix].text, strlen(rows[ix].text), hash);
        expect(hash, rows[ix].wanted);
    }
}

/* The length takes eight bytes of the last block: from 56 bytes on, they need
 * a block of their own. */
static void lengths_around_a_block_are_padded(void **state)
{
    (void)state;
    static const struct {
        size_t len;
        const char *wanted; /* of so many letters a */
    } rows[] = {
        {55,
         "9f4390f8d30c2dd92ec9f095b65e2b9a"
         "e9b0a925a5258e241c9f1e910f734318"},
        {56,
         "b35439a4ac6f0948b6d6f9e3c6af0f5f"
         "590ce20f1bde7090ef7970686ec6738a"},
        {63,
         "7d3e74a05d7db15bce4ad9ec0658ea98"
         "e3f06eeecf16b4c6fff2da457ddc2f34"},
        {64,
         "ffe054fe7ae0cb6dc65c3af9b61d5209"
         "f439851db43d0ba5997337df154668eb"},
        {65,
         "635361c48bb9eab14198e76ea8ab7f1a"
         "41685d6ad62aa9146d301d4f17eb0ae0"},
        {119,
         "31eba51c313a5c08226adf18d4a359cf"
         "dfd8d2e816b13f4af952f7ea6584dcfb"},
        {120,
         "2f3d335432c70b580af0e8e1b3674a7c"
         "020d683aa5f73aaaedfdc55af904c21c"},
        {1000000,
         "cdc76e5c9914fb9281a1c7e284d73e67"
         "f1809a48a497200e046d39ccc7112cd0"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        unsigned char hash[SHA256_BYTES];
        /* As long as its text, so that ASan sees a byte too many. */
        char *text = mem_zalloc(rows[ix].len, 1);
        memset(text, 'a', rows[ix].len);
        sha256(text, rows[ix].len, hash);
        expect(hash, rows[ix].wanted);
        mem_free(text);
    }
}

static void bytes_need_not_be_text(void **state)
{
    (void)state;
    static const unsigned char bytes[] = {0x00, 0xff, 0x80, 0x00};
    unsigned char all[SHA256_BYTES];
    unsigned char part[SHA256_BYTES];
    sha256(bytes, sizeof(bytes), all);
    sha256(bytes, sizeof(bytes) - 1, part);
    assert_memory_not_equal(all, part, SHA256_BYTES);
}

/* HMAC pads a key with zeros, so a shorter one is its own with zeros. */
static void known_secrets_have_their_codes(void **state)
{
    (void)state;
    unsigned char range[25];
    char many_dd[50];
    char many_cd[50];
    memset(many_dd, 0xdd, sizeof(many_dd));
    memset(many_cd, 0xcd, sizeof(many_cd));
    for (size_t ix = 0; ix < sizeof(range); ix++) {
        range[ix] = (unsigned char)(ix + 1);
    }
    const struct {
        const void *secret;
        size_t secret_len;
        const char *bytes;
        size_t len;
        const char *wanted;
    } rows[] = {
        {"\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b\x0b"
         "\x0b\x0b\x0b",
         20,
         "Hi There",
         8,
         "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
        {"Jefe",
         4,
         "what do ya want for nothing?",
         28,
         "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
        {"\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa\xaa"
         "\xaa\xaa\xaa",
         20,
         many_dd,
         sizeof(many_dd),
         "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
        {range,
         sizeof(range),
         many_cd,
         sizeof(many_cd),
         "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b"},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"
         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
         32,
         "",
         0,
         "b20ae80e1d70f49e9bb56625a4c9cf02a5547bd2e2ef7cf0657e59f44cc0c017"},
    };
    for (size_t ix = 0; ix < ARRAY_COUNT(rows); ix++) {
        unsigned char secret[SHA256_BYTES] = {0};
        unsigned char hash[SHA256_BYTES];
        memcpy(secret, rows[ix].secret, rows[ix].secret_len);
        sha256_keyed(secret, rows[ix].bytes, rows[ix].len, hash);
        expect(hash, rows[ix].wanted);
    }
}

static void each_byte_of_a_secret_counts(void **state)
{
    (void)state;
    unsigned char secret[SHA256_BYTES] = {0};
    unsigned char first[SHA256_BYTES];
    unsigned char other[SHA256_BYTES];
    sha256_keyed(secret, "text", 4, first);
    for (size_t ix = 0; ix < SHA256_BYTES; ix++) {
        secret[ix] = 1;
        sha256_keyed(secret, "text", 4, other);
        assert_memory_not_equal(first, other, SHA256_BYTES);
        secret[ix] = 0;
    }
    sha256(secret, SHA256_BYTES, other);
    assert_memory_not_equal(first, other, SHA256_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts_have_their_hashes),
        cmocka_unit_test(lengths_around_a_block_are_padded),
        cmocka_unit_test(bytes_need_not_be_text),
        cmocka_unit_test(known_secrets_have_their_codes),
        cmocka_unit_test(each_byte_of_a_secret_counts),
    };
    return cmocka_run_group_tests_name("sha256", tests, NULL, NULL);
}
