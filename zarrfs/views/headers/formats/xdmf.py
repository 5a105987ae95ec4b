"""XDMF 2 for ParaView, VisIt and VTK: https://www.xdmf.org/index.php/XDMF_Model_and_Format."""

from __future__ import annotations

from functools import partial
from xml.sax.saxutils import escape

from zarrfs.views.facts.facts import Axis
from zarrfs.views.facts.text import digits, xml_attribute
from zarrfs.views.headers.described import Described
from zarrfs.views.headers.form import Form, Inexpressible, Plan


def xmf(array: Described) -> Plan:
    """A regular grid of two or three axes with numbers, or vectors of three, at its nodes."""
    kind = array.check("XDMF", 2, 4 if array.channels else 3)
    if array.channels not in (0, 3) or len(array.image_axes) < 2:
        raise Inexpressible("XDMF has no channels but vectors of three")
    return partial(_form, array, kind)


def _form(array: Described, kind: str) -> Form:
    axes = array.image_axes
    size = array.data_type.item_size
    if len(axes) == 2:
        # VTK reads vectors in three dimensions only, and takes the axes of a plane for y and z.
        axes = (Axis(1), *axes)
    shape = " ".join(str(axis.length) for axis in axes)
    elements = f"{shape} {array.channels}" if array.channels else shape
    values = "Vector" if array.channels else "Scalar"
    # VTK has no grids whose places fall.
    origin = " ".join("0" if axis.falls else digits(axis.origin) for axis in axes)
    spacing = " ".join("1" if axis.falls else digits(axis.size) for axis in axes)
    endian = "Big" if array.big else "Little"
    name = xml_attribute(array.name)
    coordinates = 'Dimensions="3" NumberType="Float" Precision="8" Format="XML"'
    binary = f'NumberType="{kind}" Precision="{size}" Format="Binary" Endian="{endian}"'
    text = f"""<?xml version="1.0" ?>
<Xdmf Version="2.0">
  <Domain>
    <Grid Name={name} GridType="Uniform">
      <Topology TopologyType="3DCoRectMesh" Dimensions="{shape}"/>
      <Geometry GeometryType="ORIGIN_DXDYDZ">
        <DataItem {coordinates}>{origin}</DataItem>
        <DataItem {coordinates}>{spacing}</DataItem>
      </Geometry>
      <Attribute Name={name} AttributeType="{values}" Center="Node">
        <DataItem Dimensions="{elements}" {binary}>
          {escape(array.data_file)}
        </DataItem>
      </Attribute>
    </Grid>
  </Domain>
</Xdmf>
"""
    return Form(text.encode())
