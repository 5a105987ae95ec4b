#!/usr/bin/env bash
# vcztools leaves no record out when it shall exclude AF>0.1, AC=1 or REF="A", and finds no AF=0.1.
#
# Versions: vcztools 0.2.0, bio2zarr 0.2.1, cyvcf2 0.35.0, pysam 0.24.1 (with bcftools 1.24), zarr 3.1.6, numpy 2.4.6.
# Behaviour: vcztools answers the expressions of bcftools from VCF in Zarr. A field with several values for a
# record (INFO of Number=A or R, REF with ALT) matches if any value does. For `-e`, vcztools negates each
# value, the padding of shorter records too, before it looks for any: a record is excluded only if all values of the
# longest record match. `ALT!="G"` is true for the padding. Floats are compared as float64 with float32 numbers, so
# that 0.1 equals no 0.1. All without an error; fields of one value (NS) are right. Issue 341 of vcztools
# reports `-e` of FORMAT fields.
# Expected before the run: the records of bcftools, or an error.
# Output seen (records that remain, of 100 A G AF=0.5, 200 A G,T AF=0.05,0.25, and 300 C T AF=0.1):
#   -e NS>2       bcftools 200 300      vcztools 200 300
#   -e AF>0.2     bcftools 300          vcztools 100 200 300
#   -e AC=1       bcftools 300          vcztools 100 200 300
#   -e REF="A"    bcftools 300          vcztools 100 200 300
#   -e ALT="G"    bcftools 300          vcztools 100 200 300
#   -i ALT!="G"   bcftools 200 300      vcztools 100 200 300
#   -i AF=0.1     bcftools 300          vcztools none
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" --quiet install vcztools==0.2.0 bio2zarr==0.2.1 cyvcf2==0.35.0 pysam==0.24.1 zarr==3.1.6 numpy==2.4.6
cd "$folder"
cat >a.vcf <<'VCF'
##fileformat=VCFv4.3
##INFO=<ID=NS,Number=1,Type=Integer,Description="Samples">
##INFO=<ID=AC,Number=A,Type=Integer,Description="Allele count">
##INFO=<ID=AF,Number=A,Type=Float,Description="Allele frequency">
##FORMAT=<ID=GT,Number=1,Type=String,Description="Genotype">
##contig=<ID=1,length=1000>
VCF
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' >>a.vcf \
    '#CHROM' POS ID REF ALT QUAL FILTER INFO FORMAT S1 \
    1 100 . A G 30 . 'NS=3;AC=1;AF=0.5' GT 0/1 \
    1 200 . A G,T 30 . 'NS=1;AC=1,2;AF=0.05,0.25' GT 1/2 \
    1 300 . C T 30 . 'NS=2;AC=3;AF=0.1' GT 0/1
venv/bin/python -I -W ignore - <<'PYTHON'
import subprocess

import pysam
import pysam.bcftools


def run(*arguments):
    done = subprocess.run(["venv/bin/" + arguments[0], *arguments[1:]], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


pysam.tabix_index("a.vcf", preset="vcf")
run("vcf2zarr", "convert", "a.vcf.gz", "a.vcz", "--no-progress")
for option, expression, expected, seen in (
    ("-e", "NS>2", "200 300", "200 300"),
    ("-e", "AF>0.2", "300", "100 200 300"),
    ("-e", "AC=1", "300", "100 200 300"),
    ("-e", 'REF="A"', "300", "100 200 300"),
    ("-e", 'ALT="G"', "300", "100 200 300"),
    ("-i", 'ALT!="G"', "200 300", "100 200 300"),
    ("-i", "AF=0.1", "300", ""),
):
    query = "-f", "%POS\n", option, expression
    right = " ".join(pysam.bcftools.query(*query, "a.vcf.gz").split())
    found = " ".join(run("vcztools", "query", *query, "a.vcz").split())
    print(f"{option} {expression:10} bcftools {right:12} vcztools {found or 'none'}")
    assert (right, found) == (expected, seen)
PYTHON
