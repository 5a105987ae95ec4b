import java.security.MessageDigest;
import loci.formats.FormatTools;
import loci.formats.ImageReader;

/** Prints the order of axes and, for each level and plane of a file, the digest of its bytes. */
public class Planes {
  public static void main(String[] files) throws Exception {
    loci.common.DebugTools.setRootLevel("ERROR");
    ImageReader reader = new ImageReader();
    reader.setFlattenedResolutions(false);
    for (String file : files) {
      reader.setId(file);
      System.out.println("file " + reader.getDimensionOrder() + " "
          + FormatTools.getPixelTypeString(reader.getPixelType()) + " "
          + reader.getResolutionCount());
      for (int level = 0; level < reader.getResolutionCount(); level++) {
        reader.setResolution(level);
        for (int plane = 0; plane < reader.getImageCount(); plane++) {
          int[] zct = reader.getZCTCoords(plane);
          byte[] digest = MessageDigest.getInstance("MD5").digest(reader.openBytes(plane));
          StringBuilder text = new StringBuilder();
          for (byte one : digest) {
            text.append(String.format("%02x", one));
          }
          System.out.println(level + " " + zct[0] + " " + zct[1] + " " + zct[2] + " " + text);
        }
      }
      reader.close();
    }
  }
}
