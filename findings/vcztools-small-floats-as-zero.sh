#!/usr/bin/env bash
# vcztools writes probabilities below 0.0005 as 0 into VCF, and the integers -1 and -2 as missing.
#
# Versions: vcztools 0.2.0, bio2zarr 0.2.1, cyvcf2 0.35.0, pysam 0.24.1 (with bcftools 1.24), zarr 3.1.6, numpy 2.4.6.
# Behaviour: `vcztools view` writes floats with three decimals, so that P=0.00004, an error rate or a small quality become
# 0, and their order is lost. The Zarr store has them. The integers -1 and -2 are stored as they are, but they
# also are the marks of VCF Zarr for missing values and for padding (issue 12 of vcf-zarr-spec): -1 comes back as a
# dot, -2 as an empty text, which is no value of VCF, and a field of INFO with only such values is left out.
# Expected before the run: floats of six digits, as bcftools writes them, and integers as they are, or an error.
# Output seen:
#   given:  QUAL 1e-05  P=4e-05;S=-1  GT:D:E  0/1:-1:0.0004 0/1:-2:0.0006 0/1:3:0.5
#   found:  QUAL 0      P=0           GT:D:E  0/1:.:0 0/1::0.001 0/1:3:0.5
#   in Zarr: P 4e-05, S -1, D [-1, -2, 3]
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install vcztools==0.2.0 bio2zarr==0.2.1 cyvcf2==0.35.0 pysam==0.24.1 zarr==3.1.6 numpy==2.4.6
cd "$folder"
cat >a.vcf <<'VCF'
##fileformat=VCFv4.3
##INFO=<ID=P,Number=1,Type=Float,Description="Probability">
##INFO=<ID=S,Number=1,Type=Integer,Description="Shift">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##FORMAT=<ID=D,Number=1,Type=Integer,Description="Difference">
##FORMAT=<ID=E,Number=1,Type=Float,Description="Error rate">
##contig=<ID=1,length=1000>
VCF
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' >>a.vcf \
    '#CHROM' POS ID REF ALT QUAL FILTER INFO FORMAT S1 S2 S3 \
    1 100 . A G 1e-05 . 'P=4e-05;S=-1' GT:D:E 0/1:-1:0.0004 0/1:-2:0.0006 0/1:3:0.5
venv/bin/python -I -W ignore - <<'PYTHON'
import subprocess

import pysam
import pysam.bcftools
import zarr


def run(*arguments):
    done = subprocess.run(["venv/bin/" + arguments[0], *arguments[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


pysam.tabix_index("a.vcf", preset="vcf")
run("vcf2zarr", "convert", "a.vcf.gz", "a.vcz", "--no-progress")
given = pysam.bcftools.view("a.vcf.gz").splitlines()[-1].split("\t")
found = run("vcztools", "view", "a.vcz").splitlines()[-1].split("\t")
for name, row in ("given:", given), ("found:", found):
    print(f"{name}  QUAL {row[5]:6} {row[7]:13} {row[8]} ", *row[9:])
assert (given[5], *given[7:]) == ("1e-05", "P=4e-05;S=-1", "GT:D:E", "0/1:-1:0.0004", "0/1:-2:0.0006", "0/1:3:0.5")
assert (found[5], *found[7:]) == ("0", "P=0", "GT:D:E", "0/1:.:0", "0/1::0.001", "0/1:3:0.5")
store = zarr.open("a.vcz", mode="r")
numbers = float(store["variant_P"][0]), int(store["variant_S"][0]), store["call_D"][0].tolist()
print("in Zarr: P {:.6g}, S {}, D {}".format(*numbers))
assert abs(numbers[0] - 4e-5) < 1e-9 and numbers[1:] == (-1, [-1, -2, 3])
PYTHON
