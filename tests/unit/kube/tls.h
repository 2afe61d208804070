/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* For tests only: a CA, its server called api.test, and an unrelated CA. Valid for a hundred years;
 * the CA's key was thrown away. */

static const char tls_ca[] = "-----BEGIN CERTIFICATE-----\n"
                             "MIIBnDCCAUGgAwIBAgIUM9rbb0zua98B5Ha7FA3rsTe2rhIwCgYIKoZIzj0EAwIw\n"
                             "GjEYMBYGA1UEAwwPYWxpcXVvdCB0ZXN0IENBMCAXDTI2MTEyMTA5MzA1MloYDzIx\n"
                             "MjYxMDI4MDkzMDUyWjAaMRgwFgYDVQQDDA9hbGlxdW90IHRlc3QgQ0EwWTATBgcq\n"
                             "hkjOPQIBBggqhkjOPQMBBwNCAARRKJEn0IqjyToCMw0RJlHO1XKR0+6v0T0ZYKKn\n"
                             "UZoTLzhBzJA6oRLNwDXORbveozK4+tOcqY++QpzbV7HkCTMbo2MwYTAdBgNVHQ4E\n"
                             "FgQU5N+zHGUswCtRwruEk/vC5iWcY1owHwYDVR0jBBgwFoAU5N+zHGUswCtRwruE\n"
                             "k/vC5iWcY1owDwYDVR0TAQH/BAUwAwEB/zAOBgNVHQ8BAf8EBAMCAgQwCgYIKoZI\n"
                             "zj0EAwIDSQAwRgIhAO8mUHXJ4kxa09uOAoLnRaCLsjN4qLk3zxn+ZiQV5nQgAiEA\n"
                             "74QJoImb0jSP+/QOWRlaAKG4VLK1VWxLsTIwUUY+kAk=\n"
                             "-----END CERTIFICATE-----\n";

static const char tls_server_cert[] = "-----BEGIN CERTIFICATE-----\n"
                                      "MIIBjjCCATSgAwIBAgIUM6+hCtp0BJOs4Qx2fMGToV2Iy/wwCgYIKoZIzj0EAwIw\n"
                                      "GjEYMBYGA1UEAwwPYWxpcXVvdCB0ZXN0IENBMCAXDTI2MTEyMTA5MzA1MloYDzIx\n"
                                      "MjYxMDI4MDkzMDUyWjAOMQwwCgYDVQQDDANhcGkwWTATBgcqhkjOPQIBBggqhkjO\n"
                                      "PQMBBwNCAARiMbrtN8u/b3s5Lqz25e66WEdFO2t4HR4USRDWOTngSnnbyDNUmN1i\n"
                                      "L1TO6kzRP/bC2NZiUVzUH3FJraj4G0M5o2IwYDATBgNVHREEDDAKgghhcGkudGVz\n"
                                      "dDAJBgNVHRMEAjAAMB0GA1UdDgQWBBTtjX2RPHUcN19qmxBUCkew9xe4ADAfBgNV\n"
                                      "HSMEGDAWgBTk37McZSzAK1HCu4ST+8LmJZxjWjAKBggqhkjOPQQDAgNIADBFAiAI\n"
                                      "xTjAs2/jTOhxtNwduhlitICHySqEu/6j4Vdqmf40NAIhAM70nA9eIpRTMkCmHxaH\n"
                                      "OusGR4Adp7Pyy+9bdF1ThHS+\n"
                                      "-----END CERTIFICATE-----\n";

static const char tls_server_key[] = "-----BEGIN PRIVATE KEY-----\n"
                                     "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgeDrAHUaPMmLV0lFj\n"
                                     "gDlbofkMqosnk7FUxQxNrck56C2hRANCAARiMbrtN8u/b3s5Lqz25e66WEdFO2t4\n"
                                     "HR4USRDWOTngSnnbyDNUmN1iL1TO6kzRP/bC2NZiUVzUH3FJraj4G0M5\n"
                                     "-----END PRIVATE KEY-----\n";

static const char tls_other_ca[] = "-----BEGIN CERTIFICATE-----\n"
                                   "MIIBgTCCASegAwIBAgIURUjrcIG6Ua3X0VWckHIVQ/bbCtswCgYIKoZIzj0EAwIw\n"
                                   "FTETMBEGA1UEAwwKYW5vdGhlciBDQTAgFw0yNjExMjEwOTMwNTJaGA8yMTI2MTAy\n"
                                   "ODA5MzA1MlowFTETMBEGA1UEAwwKYW5vdGhlciBDQTBZMBMGByqGSM49AgEGCCqG\n"
                                   "SM49AwEHA0IABNXVObmH5en8NE5HQF2htxl+ell/lSiqFMfzNAsjE5Ct5VLviOtM\n"
                                   "a7cXkRrRvurbeHoESA99qthI+4uhNSTnb1yjUzBRMB0GA1UdDgQWBBQAXR2Oy/hw\n"
                                   "U/vBfzwuF6s5WNnuEzAfBgNVHSMEGDAWgBQAXR2Oy/hwU/vBfzwuF6s5WNnuEzAP\n"
                                   "BgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIQCq8y6MGumeUa5zlp6q\n"
                                   "rBPP3/2NBFjRiRH3xJPXah8b0wIgIW9ppqfE4sWUeI/OJYHvW6YDpo/A4dufYOgB\n"
                                   "qqUyS5U=\n"
                                   "-----END CERTIFICATE-----\n";
