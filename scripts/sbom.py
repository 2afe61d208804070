# SPDX-License-Identifier: Apache-2.0
"""The bill of materials of a release, as SPDX 2.3: the Debian packages that the programs load or contain, their versions and
licences. A licence is named where the package's notice has one short name for all its files that SPDX knows as well;
otherwise the document has the notice itself."""

import datetime
import hashlib
import re

# Linked or compiled in, where readelf shows no library: the static plugin, and uthash's headers.
CONTAINED = ["libc6-dev", "libgcc-12-dev", "uthash-dev"]
# DEP-5 (debian.org/doc/packaging-manuals/copyright-format/1.0) -> spdx.org/licenses
SPDX_NAMES = {"Apache-2.0": "Apache-2.0", "BSD-2-clause": "BSD-2-Clause", "BSD-3-clause": "BSD-3-Clause", "Expat": "MIT", "MIT": "MIT",
              "ISC": "ISC", "Zlib": "Zlib", "curl": "curl", "GPL-2+": "GPL-2.0-or-later", "GPL-3+": "GPL-3.0-or-later",
              "LGPL-2+": "LGPL-2.0-or-later", "LGPL-2.1+": "LGPL-2.1-or-later", "LGPL-3+": "LGPL-3.0-or-later"}
SUPPLIER = "Organization: Debian"


def licence(notice):
    """the SPDX name of the licence of all files, or None"""
    paragraphs = re.split(r"\n\s*\n", notice)
    names = {name for p in paragraphs if p.startswith("Files:") and not re.match(r"Files:\s*debian/\*", p)
             for name in re.findall(r"^License: *(.*)$", p, re.M)}
    return SPDX_NAMES.get(names.pop()) if len(names) == 1 else None


def package(root, name):
    """(the package's entry, the licence text that it refers to or None)"""
    bare, version = name.split(":")[0], root.field(name, "Version")
    notice = (root.copyright(name) or b"").decode(errors="replace")
    known = licence(notice)
    own = f"LicenseRef-{re.sub('[^a-zA-Z0-9.-]', '-', bare)}" if notice and not known else None
    entry = {"SPDXID": spdx_id(bare, root.architecture), "name": bare, "versionInfo": version, "supplier": SUPPLIER,
             "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "NOASSERTION",
             "licenseDeclared": known or own or "NOASSERTION", "copyrightText": "NOASSERTION",
             "sourceInfo": f"built from the source package {root.field(name, 'source:Package')} {root.field(name, 'source:Version')}",
             "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl",
                               "referenceLocator": f"pkg:deb/debian/{bare.replace('+', '%2B')}@{version}?arch={root.architecture}&distro=bookworm"}]}
    text = {"licenseId": own, "name": f"the notice of {bare}", "extractedText": notice} if own else None
    return entry, text


def spdx_id(name, architecture):
    return "SPDXRef-" + re.sub("[^a-zA-Z0-9.-]", "-", f"{name}-{architecture}")


def product(version, architecture):
    return {"SPDXID": spdx_id("aliquot", architecture), "name": "aliquot", "versionInfo": version, "supplier": "NOASSERTION",
            "downloadLocation": "NOASSERTION", "filesAnalyzed": False, "licenseConcluded": "Apache-2.0",
            "licenseDeclared": "Apache-2.0", "copyrightText": "NOASSERTION", "comment": f"the programs for linux/{architecture}"}


def document(version, when, builds):
    """builds: the root that the programs were linked with, and the paths of the programs"""
    packages, texts, relations = [], {}, []

    def relate(a, kind, b):
        relations.append({"spdxElementId": a, "relationshipType": kind, "relatedSpdxElement": b})

    for root, programs in builds:
        own = product(version, root.architecture)
        packages.append(own)
        relate("SPDXRef-DOCUMENT", "DESCRIBES", own["SPDXID"])
        loaded = root.owners(root.libraries(programs))
        contained = [name for name in CONTAINED if root.field(name, "Version")]
        for name, kind in [(n, "DYNAMIC_LINK") for n in loaded] + [(n, "STATIC_LINK") for n in contained]:
            entry, text = package(root, name)
            packages.append(entry)
            relate(own["SPDXID"], kind, entry["SPDXID"])
            if text:
                texts[text["licenseId"]] = text
    content = repr([(p["SPDXID"], p["versionInfo"]) for p in packages]).encode()
    created = datetime.datetime.fromtimestamp(when, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {"spdxVersion": "SPDX-2.3", "SPDXID": "SPDXRef-DOCUMENT", "dataLicense": "CC0-1.0", "name": f"aliquot-{version}",
            "documentNamespace": f"https://aliquot.dev/spdx/{version}/{hashlib.sha256(content).hexdigest()}",
            "creationInfo": {"created": created, "creators": ["Tool: scripts/sbom.py"]},
            "packages": packages, "relationships": relations,
            "hasExtractedLicensingInfos": [texts[key] for key in sorted(texts)]}
