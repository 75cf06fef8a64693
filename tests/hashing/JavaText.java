import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;

/** Reads big-endian doubles (argument "double") or floats ("float"); writes the line of a row with that one number. */
class JavaText {
    public static void main(String[] arguments) throws Exception {
        boolean isDouble = arguments[0].equals("double");
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 20));
        StringBuilder text = new StringBuilder();
        try (PrintStream out = new PrintStream(new BufferedOutputStream(System.out, 1 << 20), false, StandardCharsets.US_ASCII)) {
            while (true) {
                try {
                    String number = isDouble ? Double.toString(in.readDouble()) : Float.toString(in.readFloat());
                    text.append("{\"v\":").append(number).append("}\n");
                } catch (EOFException end) {
                    break;
                }
                if (text.length() > 1 << 16) {
                    out.append(text);
                    text.setLength(0);
                }
            }
            out.append(text);
        }
    }
}
