#!/usr/bin/env bash
# Makes sure that what these Debian packages bring is there: packages.sh PACKAGE...
# Asks for the thing itself and not for the package, so that other sources of it count.
set -euo pipefail

has() {
    case $1 in
        attr) command -v getfattr ;;
        default-jdk-headless) command -v javac ;;
        default-jre) command -v java ;;
        gdal-bin) command -v gdalinfo ;;
        gnudatalanguage) command -v gdl ;;
        hdf5-tools) command -v h5dump ;;
        imagej) test -e /usr/share/java/ij.jar ;;
        imagemagick) test -x /usr/bin/convert -o -x /usr/bin/magick ;;
        libvips-tools) command -v vips ;;
        libxdmf3) compgen -G '/usr/lib/*/libXdmf.so.3' ;;
        netcdf-bin) command -v ncdump ;;
        nifti-bin) command -v nifti_tool ;;
        r-base-core) command -v R ;;
        teem-apps) command -v teem-unu ;;
        mrtrix3) command -v mrinfo ;;
        r-cran-ncdf4) test -d /usr/lib/R/site-library/ncdf4 ;;
        fuse3) command -v fusermount3 ;;
        libc6-dev) test -e /usr/include/stdio.h ;;
        libfuse3-dev) pkg-config --exists fuse3 ;;
        xvfb) command -v Xvfb ;;
        *) command -v "$1" ;;
    esac >/dev/null 2>&1
}

missing=()
for package in "$@"; do
    has "$package" || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

if [ "$(id -u)" -ne 0 ] || ! command -v apt-get >/dev/null; then
    echo "zarrfs needs system packages; as root: apt-get install ${missing[*]}" >&2
    exit 1
fi
echo "Installing system packages: ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
"${apt[@]}" update </dev/null
"${apt[@]}" install -y --no-install-recommends "${missing[@]}" </dev/null >/dev/null
